/* Notices of problems that several views show. */

import { given, h, notice } from "./dom.js";

/** Build the notice of settings of topics that differ from those needed; null without any. */
export function topicProblems(problems) {
  if (!problems?.length) return null;
  const one = ({ topic, setting, found, needed }) =>
    h("li", {}, given(topic), `: ${setting} is `, given(found), `, must be ${needed}`);
  return notice(
    "warn",
    h("p", {}, "Topics have other settings than needed:"),
    h("ul", {}, problems.map(one)),
  );
}
