/* The key of the reader: an API key or a token, which every request sends while it is set. */

const PLACE = "coincide-key";

/** State of the access; "change" events follow each change. */
export const access = Object.assign(new EventTarget(), { key: kept(), isRefused: false });

/** Use a key, or none. It is forgotten when the tab is closed. */
export function useKey(key) {
  try {
    if (key === null) sessionStorage.removeItem(PLACE);
    else sessionStorage.setItem(PLACE, key);
  } catch {
    // The browser stores nothing for this page: the key is lost with a reload.
  }
  // Without a key, the service was asked before: it refuses.
  change(key, key === null);
}

/** Note that the service refused a request with a key; an old key does not matter any more. */
export function refuse(key) {
  if (key === access.key && !access.isRefused) change(key, true);
}

function change(key, isRefused) {
  Object.assign(access, { key, isRefused });
  access.dispatchEvent(new Event("change"));
}

function kept() {
  try {
    return sessionStorage.getItem(PLACE);
  } catch {
    return null;
  }
}
