// Small things that are remembered while the tab is open, where the browser allows it.

const kept = new Map();

/** What was kept under a name in this tab, or null. */
export function remembered(name) {
  try {
    return JSON.parse(sessionStorage.getItem(name) ?? "null");
  } catch {
    // A page of a shared function has no storage; it remembers for as long as it is open.
    return kept.get(name) ?? null;
  }
}

export function remember(name, value) {
  kept.set(name, value);
  try {
    sessionStorage.setItem(name, JSON.stringify(value));
  } catch {
    // Then until the page is left.
  }
}
