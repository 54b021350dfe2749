// Starts Swagger UI with the document of this server, and offers the visitor's own ids as values of path parameters.

const viewer = document.querySelector("#viewer");

const toExamples = (offers) =>
  Object.fromEntries(offers.map(({ name, id }) => [`${name} ${id}`, { summary: name, value: id }]));

async function startViewer() {
  const response = await fetch("/openapi.json");
  if (!response.ok) throw new Error(`The server answered ${response.status}`);
  const spec = await response.json();
  // The policy of the page allows requests to its own origin only.
  spec.servers = [{ url: new URL(spec.servers[0].url).pathname }];
  const ids = JSON.parse(viewer.dataset.ids);
  for (const operation of Object.values(spec.paths).flatMap((methods) => Object.values(methods)))
    for (const parameter of operation.parameters)
      if (ids[parameter.name]?.length > 0) parameter.examples = toExamples(ids[parameter.name]);
  SwaggerUIBundle({
    spec,
    domNode: viewer,
    deepLinking: true,
    docExpansion: "none",
    defaultModelsExpandDepth: -1,
    filter: true,
    tryItOutEnabled: true,
    validatorUrl: null,
  });
}

const scheme = matchMedia("(prefers-color-scheme: dark)");
const showScheme = () => document.documentElement.classList.toggle("dark-mode", scheme.matches);
scheme.addEventListener("change", showScheme);
showScheme();
startViewer().catch((error) => (viewer.textContent = `Cannot load /openapi.json: ${error.message}. Reload the page.`));
