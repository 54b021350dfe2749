/** Finds what a client of an earlier API cannot do any more, by the OpenAPI documents of both. */

type Schema = { [name: string]: any };
type Document = { paths: Record<string, Record<string, any>>; components: Record<string, Record<string, Schema>> };
/** A later API may accept more in a request, and may answer more fields. */
type Direction = "request" | "answer";
type Pair = { before: Schema; after: Schema; at: string; direction: Direction };

const METHODS = ["get", "post", "put", "patch", "delete"];
const LIMITS = ["maxLength", "maxItems", "maximum", "minLength", "minItems", "minimum"];

/** Returns a line for each change. */
export function findBreakingChanges(before: Document, after: Document): string[] {
  const documents: Documents = {
    compare: createComparison(before, after),
    before: (value) => resolve(before, value),
    after: (value) => resolve(after, value),
  };
  return Object.entries(before.paths).flatMap(([path, operations]) =>
    METHODS.filter((method) => operations[method]).flatMap((method) => {
      const now = after.paths[path]?.[method];
      const at = `${method.toUpperCase()} ${path}`;
      return now ? compareOperation(operations[method], now, at, documents) : [`${at} is missing`];
    }),
  );
}

type Documents = {
  compare: (pair: Pair) => string[];
  /** What a reference of the document refers to. */
  before: (value: Schema) => Schema;
  after: (value: Schema) => Schema;
};

function resolve(document: Document, value: Schema): Schema {
  if (typeof value["$ref"] !== "string") return value;
  const [, , kind, name] = value["$ref"].split("/");
  return document.components[kind!]![name!]!;
}

function compareOperation(old: any, now: any, at: string, documents: Documents): string[] {
  const toName = (parameter: any) => `${parameter.in} ${parameter.name}`;
  const known: any[] = (old.parameters ?? []).map(documents.before);
  const current = new Map<string, any>(
    (now.parameters ?? []).map(documents.after).map((one: any) => [toName(one), one] as const),
  );
  const changes = known.flatMap((one) => {
    const other = current.get(toName(one));
    if (!other) return [`${at}: the parameter ${toName(one)} is missing`];
    if (other.required && !one.required) return [`${at}: the parameter ${toName(one)} is required`];
    return documents.compare({
      before: one.schema,
      after: other.schema,
      at: `${at} ${one.name}`,
      direction: "request",
    });
  });
  const knownNames = known.map(toName);
  const added = [...current.values()].filter((one) => one.required && !knownNames.includes(toName(one)));
  return [
    ...changes,
    ...added.map((one) => `${at}: the parameter ${toName(one)} is required`),
    ...compareContent(old.requestBody, now.requestBody, { at: `${at} body`, direction: "request" }, documents),
    ...Object.keys(old.responses ?? {}).flatMap((status) => {
      const [response, other] = [documents.before(old.responses[status]), now.responses?.[status]];
      if (!other) return [`${at}: the status ${status} is missing`];
      return compareContent(
        response,
        documents.after(other),
        { at: `${at} ${status}`, direction: "answer" },
        documents,
      );
    }),
  ];
}

function compareContent(
  old: any,
  now: any,
  { at, direction }: Pick<Pair, "at" | "direction">,
  { compare }: Documents,
): string[] {
  return Object.entries<any>(old?.content ?? {}).flatMap(([type, { schema }]) => {
    const other = now?.content?.[type];
    if (!other) return [`${at}: ${type} is missing`];
    return schema && other.schema ? compare({ before: schema, after: other.schema, at, direction }) : [];
  });
}

/** Compares schemas of both documents. */
function createComparison(before: Document, after: Document): (pair: Pair) => string[] {
  /** Named schemas that were compared: each is compared once, and may contain itself. */
  const seen = new Set<string>();

  function compare(pair: Pair): string[] {
    const { at, direction } = pair;
    if (pair.before["$ref"] !== undefined) {
      const key = [pair.before["$ref"], pair.after["$ref"], direction].join(" ");
      if (seen.has(key)) return [];
      seen.add(key);
    }
    const [old, now] = [resolve(before, pair.before), resolve(after, pair.after)];
    const variants = (schema: Schema): Schema[] | undefined => schema["anyOf"] ?? schema["oneOf"];
    if (variants(old) ?? variants(now)) return compareVariants(variants(old) ?? [old], variants(now) ?? [now], pair);
    if (old["type"] !== undefined && now["type"] !== undefined && !Bun.deepEquals(old["type"], now["type"]))
      return [`${at}: the type ${old["type"]} became ${now["type"]}`];
    const [items, itemsNow] = [old["items"], now["items"]];
    return [
      ...compareValues(old, now, pair),
      ...compareProperties(old, now, pair),
      ...(items && itemsNow ? compare({ before: items, after: itemsNow, at: `${at}[]`, direction }) : []),
    ];
  }

  /** Each variant of before must be possible without a change. */
  const compareVariants = (old: Schema[], now: Schema[], { at, direction }: Pair): string[] =>
    old.flatMap((variant) => {
      const attempts = now.map((other) => compare({ before: variant, after: other, at, direction }));
      return attempts.toSorted((one, other) => one.length - other.length)[0] ?? [`${at}: a variant is missing`];
    });

  function compareProperties(old: Schema, now: Schema, { at, direction }: Pair): string[] {
    const [properties, current] = [old["properties"] ?? {}, now["properties"] ?? {}];
    const [required, requiredNow]: [string[], string[]] = [old["required"] ?? [], now["required"] ?? []];
    const changes = Object.entries<Schema>(properties).flatMap(([name, property]) =>
      current[name]
        ? compare({ before: property, after: current[name], at: `${at}.${name}`, direction })
        : [`${at}.${name} is missing`],
    );
    const stricter =
      direction === "request"
        ? requiredNow.filter((name) => !required.includes(name)).map((name) => `${at}.${name} is required`)
        : required.filter((name) => !requiredNow.includes(name)).map((name) => `${at}.${name} may be missing`);
    return [...changes, ...stricter];
  }
  return compare;
}

/** Values that are not possible any more, and limits of requests that are stricter. */
function compareValues(old: Schema, now: Schema, { at, direction }: Pair): string[] {
  const values = (schema: Schema): unknown[] | undefined =>
    schema["enum"] ?? (schema["const"] === undefined ? undefined : [schema["const"]]);
  const [known, current] = [values(old), values(now)];
  const lost = known && current ? known.filter((value) => !current.includes(value)) : [];
  const changes = lost.length > 0 ? [`${at}: the values ${lost.join(", ")} are missing`] : [];
  if (direction === "answer") return changes;
  if (!known && current) changes.push(`${at}: only the values ${current.join(", ")} are accepted`);
  for (const name of LIMITS) {
    const isLower = name.startsWith("min");
    const [limit, limitNow] = [old[name] ?? (isLower ? 0 : Infinity), now[name] ?? (isLower ? 0 : Infinity)];
    if (isLower ? limitNow > limit : limitNow < limit) changes.push(`${at}: ${name} ${limit} became ${limitNow}`);
  }
  return changes;
}
