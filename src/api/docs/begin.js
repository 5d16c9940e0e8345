// Begins the pages: the document lies beside them, wherever they are served, and a token is kept for as long as
// this tab is open, and nowhere else.
window.onload = function () {
  "use strict";
  const SCHEME = "bearer";
  const KEPT = "almanac.token";

  const keepsTheToken = function () {
    const authorize = (original) => (given) => {
      if (given[SCHEME]) {
        sessionStorage.setItem(KEPT, given[SCHEME].value);
      }
      return original(given);
    };
    const logout = (original) => (names) => {
      sessionStorage.removeItem(KEPT);
      return original(names);
    };
    return { statePlugins: { auth: { wrapActions: { authorize, logout } } } };
  };

  const pages = SwaggerUIBundle({
    url: "../openapi.json",
    dom_id: "#swagger-ui",
    deepLinking: true,
    filter: true,
    docExpansion: "none",
    presets: [SwaggerUIBundle.presets.apis],
    plugins: [keepsTheToken],
    layout: "BaseLayout",
    validatorUrl: null,
    onComplete: function () {
      const token = sessionStorage.getItem(KEPT);
      if (token) {
        pages.preauthorizeApiKey(SCHEME, token);
      }
    },
  });
};
