// Loads mermaid.js from this site when a page has a diagram. Without this object the theme would
// load it from another host.
window.mermaid = (() => {
  const bundle = new URL("mermaid/index.js", document.currentScript.src);
  let options = {};
  return {
    initialize(given) { options = given; },
    async render(id, text) {
      const { mermaid } = await import(bundle);
      mermaid.initialize(options);
      return mermaid.render(id, text);
    },
  };
})();
