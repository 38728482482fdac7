/* The fields of a condition's document, from the schemas of /openapi.json. */

const UNITS = ["_us", "_ms", "_s"];

/** Return the schemas of all kinds of conditions, by kind. */
export function kindsOf(openapi) {
  const all = Object.values(openapi.components.schemas);
  const found = all.filter((it) => it.properties?.kind?.const !== undefined);
  return new Map(found.map((it) => [it.properties.kind.const, it]));
}

/**
 * Return the fields of a kind, the required ones first.
 *
 * A field has `name`, `input` ("choice", "flag", "stream", "text" or "object"), `description`,
 * `isRequired`, and, for a choice, `choices`. A duration is one field, written with its unit.
 */
export function fieldsOf(schema) {
  const { properties } = schema;
  const isSpelling = (name) =>
    UNITS.some(
      (unit) => name.endsWith(unit) && isDuration(properties, name.slice(0, -unit.length)),
    );
  const required = new Set(schema.required ?? []);
  for (const { oneOf = [] } of schema.allOf ?? []) {
    for (const { required: names = [] } of oneOf) names.forEach((it) => required.add(it));
  }
  const fields = Object.entries(properties)
    .filter(([name]) => name !== "kind" && !isSpelling(name))
    .map(([name, it]) => describe(name, it, properties, required.has(name)));
  return [...fields.filter((it) => it.isRequired), ...fields.filter((it) => !it.isRequired)];
}

const isDuration = (properties, name) =>
  name in properties && UNITS.every((unit) => name + unit in properties);

function describe(name, schema, properties, isRequired) {
  const field = {
    name,
    isRequired,
    description: schema.description ?? "",
    fallback: schema.default,
  };
  if (isDuration(properties, name)) {
    const description = field.description.replace(/ In the form .*$/, "");
    return { ...field, input: "text", description: `${description} With a unit, such as 250ms.` };
  }
  const types = (schema.anyOf ?? [schema]).filter((it) => it.type !== "null");
  if (types.some((it) => it.enum))
    return { ...field, input: "choice", choices: types.flatMap((it) => it.enum ?? []) };
  if (types.every((it) => it.type === "boolean")) return { ...field, input: "flag" };
  if (types.some((it) => it.type === "object" || it.$ref !== undefined || it.type === undefined))
    return { ...field, input: "object" };
  if (types.every((it) => it.type === "string" && it.pattern?.startsWith("^[a-z0-9]")))
    return { ...field, input: "stream" };
  return { ...field, input: "text", isWhole: types.some((it) => it.type === "integer") };
}

/** Convert what was typed to the value of a field; undefined leaves the field out. */
export function valueOf(field, typed) {
  if (typed === "") return undefined;
  if (field.input === "flag") return typed === "true";
  if (field.isWhole && /^-?\d+$/.test(typed.trim())) return Number(typed);
  if (field.input === "object" && /^\s*[[{]/.test(typed)) {
    try {
      return JSON.parse(typed);
    } catch {
      // The service names the problem: a string is not valid here, or it is the text of a query.
      return typed;
    }
  }
  return typed;
}
