/* The form for an API key or a token, shown while the service refuses requests without one. */

import { access, useKey } from "../access.js";
import { request } from "../api.js";
import { h, refresh } from "../dom.js";

/* Other characters cannot be sent in a header. */
const SENDABLE = /^[\x21-\x7e]+$/;
const NOT_SENDABLE = "A key has no spaces and only ASCII characters: copy it again.";
const NOT_VALID = "The service does not accept this key: it is mistyped, expired or revoked.";

export function showSignIn({ body, signal }) {
  const problem = h("p", { class: "problem", id: "problem-key", role: "alert" });
  const described = "about-key problem-key";
  const shape = { type: "password", autocomplete: "off", required: true };
  const input = h("input", { id: "key", name: "key", ...shape, "aria-describedby": described });
  const say = (words) => {
    refresh(problem, words);
    input.setAttribute("aria-invalid", "true");
    input.focus();
  };
  const submit = async (event) => {
    event.preventDefault();
    const key = input.value.trim();
    if (!SENDABLE.test(key)) {
      say(NOT_SENDABLE);
      return;
    }
    try {
      await request("v1/schema", { key, signal });
      useKey(key);
    } catch (error) {
      if (!signal.aborted) say(error.status === 401 ? NOT_VALID : `${error.message}.`);
    }
  };
  const hint = "It is kept in this tab only, and forgotten when you close the tab or sign out.";
  body.append(
    h("p", {}, "Access control is on. The role viewer is enough for all pages."),
    h(
      "form",
      { class: "sign-in", "aria-label": "Sign in", on: { submit } },
      h("label", { for: "key" }, "API key or token"),
      input,
      problem,
      h("p", { class: "hint", id: "about-key" }, hint),
      h("button", {}, "Sign in"),
    ),
  );
  if (access.key !== null) say(NOT_VALID);
}
