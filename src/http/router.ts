/** Finds the route for a method and a path: a tree of segments, static ones before parameters. */

export type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

/** `"GET /projects/:projectId/test-runs"` → `{ projectId: string }`. */
export type PathParameters<Pattern extends string> = Pattern extends `${string}:${infer Name}/${infer Rest}`
  ? { [K in Name]: string } & PathParameters<Rest>
  : Pattern extends `${string}:${infer Name}`
    ? { [K in Name]: string }
    : unknown;

type Node<R> = { statics: Map<string, Node<R>>; parameter: Node<R> | undefined; routes: Map<string, R> };

/** `segments` are the values of the path's parameters in their order, still percent-encoded. */
export type Found<R> = { route: R; segments: string[] } | { allow: string } | undefined;

/** `find` returns the route, or the methods that the path has, or `undefined` for an unknown path. HEAD finds the route of GET. */
export function createRouter<R extends { method: Method; path: string }>(routes: readonly R[]) {
  const create = (): Node<R> => ({ statics: new Map(), parameter: undefined, routes: new Map() });
  const root = create();

  for (const route of routes) {
    let node = root;
    for (const segment of route.path.split("/").slice(1)) {
      if (segment.startsWith(":")) {
        node = node.parameter ??= create();
      } else {
        if (!node.statics.has(segment)) node.statics.set(segment, create());
        node = node.statics.get(segment)!;
      }
    }
    if (node.routes.has(route.method)) throw new Error(`Two routes for ${route.method} ${route.path}`);
    node.routes.set(route.method, route);
  }

  return function find(method: string, path: string): Found<R> {
    const segments: string[] = [];
    let node = root;
    for (let start = 1; start <= path.length;) {
      const slash = path.indexOf("/", start);
      const end = slash === -1 ? path.length : slash;
      const segment = path.slice(start, end);
      start = end + 1;
      const next = node.statics.get(segment);
      if (next) {
        node = next;
      } else if (node.parameter && segment !== "") {
        node = node.parameter;
        segments.push(segment);
      } else {
        return undefined;
      }
    }
    const route = node.routes.get(method === "HEAD" ? "GET" : method);
    if (route) return { route, segments };
    if (node.routes.size === 0) return undefined;
    const methods = [...node.routes.keys()];
    if (node.routes.has("GET")) methods.push("HEAD");
    return { allow: methods.sort().join(", ") };
  };
}
