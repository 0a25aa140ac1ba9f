// The address keeps what its reader chose: a fragment with the order and the filter of each table and the open case.
(() => {
  // A fragment without "=" names a section.
  const read = () => new URLSearchParams(location.hash.includes("=") ? location.hash.slice(1) : "");
  const restore = () => {
    const state = read();
    VIEW.parts.forEach((part, name) => part.set(state.get(name) ?? ""));
  };
  let last = null;
  VIEW.changed = name => {
    const state = new URLSearchParams();
    VIEW.parts.forEach((part, each) => { if (part.get()) state.set(each, part.get()); });
    const address = state.size ? `#${state}` : location.pathname + location.search;
    // Of what is typed into one field only the last state is gone back to.
    if (name === last && name.startsWith("filter")) history.replaceState(null, "", address);
    else history.pushState(null, "", address);
    last = name;
  };
  addEventListener("popstate", () => {
    last = null;
    if (!location.hash || location.hash.includes("=")) restore();
  });
  if (location.hash.includes("=")) restore();
})();
