/**
 * The Helm chart, rendered by Go's templates with the functions of Sprig, which is what Helm does, and its resources and those of kubernetes.yaml
 * held to the schemas and types of Kubernetes. Needs Debian's golang-go and golang-github-masterminds-sprig-dev, and the npm registry.
 */

import { beforeAll, expect, test } from "bun:test";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import packageJson from "../../../package.json" with { type: "json" };
import { createPlace, readOutput } from "../../places.ts";

const ROOT = join(import.meta.dir, "../../..");
const CHART = join(ROOT, "deploy/helm");
const LIBRARIES = "/usr/share/gocode";

const hasGo = Bun.which("go") !== null && existsSync(join(LIBRARIES, "src/github.com/Masterminds/sprig"));
if (!hasGo)
  console.warn("The Helm chart is not rendered (apt-get install golang-go golang-github-masterminds-sprig-dev)");
const isReachable = Bun.spawnSync(["npm", "ping", "--fetch-retries=0", "--fetch-timeout=10000"]).success;
if (!isReachable)
  console.warn("The npm registry cannot be reached: resources are not held to the schemas of Kubernetes");

const folder = createPlace("helm");
const run = (command: string[], { env = {}, stdin = "" }: { env?: Record<string, string>; stdin?: string } = {}) =>
  readOutput(
    Bun.spawn(command, {
      ...{ cwd: folder, stdin: new Blob([stdin]), stdout: "pipe", stderr: "pipe" },
      env: { PATH: process.env["PATH"]!, HOME: folder, ...env },
    }),
  );

beforeAll(async () => {
  if (!hasGo) return;
  const env = { GO111MODULE: "off", GOPATH: LIBRARIES, GOCACHE: join(folder, "cache"), CGO_ENABLED: "0" };
  const built = await run(["go", "build", "-o", "render", join(import.meta.dir, "render_chart.go")], { env });
  expect(built).toMatchObject({ code: 0, errors: "" });
}, 120_000);

type Resource = { apiVersion: string; kind: string; metadata: { name: string }; spec: Record<string, any> };

const render = (values: object, release = "assay") =>
  run(["./render", CHART, release, "tests"], { stdin: JSON.stringify(values) });

async function resourcesOf(values: object, release?: string): Promise<Resource[]> {
  const { code, output, errors } = await render(values, release);
  expect([code, errors]).toEqual([0, ""]);
  const files: Record<string, string> = JSON.parse(output);
  return Object.entries(files)
    .filter(([name, text]) => name.endsWith(".yaml") && text.trim() !== "")
    .map(([, text]) => Bun.YAML.parse(text) as Resource);
}

const MINIMAL = { publicUrl: "https://assay.example.com", secretKey: { existingSecret: "assay" } };
/** Every value that the chart has. */
const FULL = {
  ...MINIMAL,
  image: { repository: "registry.example.com/team/assay", tag: "1.2.3", pullSecrets: [{ name: "registry" }] },
  trustProxy: "10.0.0.0/8,fd00::/8",
  replicas: 3,
  database: { existingSecret: "postgres", key: "uri" },
  attachments: { s3: "s3://acme/attachments", endpoint: "https://minio.example", region: "eu-1", existingSecret: "s3" },
  service: { port: 8080, annotations: { team: "ci" } },
  ingress: {
    ...{ enabled: true, className: "nginx", host: "assay.example.com", tlsSecret: "tls" },
    annotations: { "nginx.ingress.kubernetes.io/proxy-body-size": "32m" },
  },
  env: { RETENTION_DAYS: "365", LOG_LEVEL: "debug" },
  envFrom: [{ secretRef: { name: "oidc" } }, { configMapRef: { name: "more" } }],
  resources: { requests: { cpu: "2", memory: "4Gi" } },
  podAnnotations: { "prometheus.io/scrape": "true" },
  nodeSelector: { disk: "ssd" },
  tolerations: [{ key: "ci", operator: "Exists" }],
  affinity: { nodeAffinity: { preferredDuringSchedulingIgnoredDuringExecution: [] } },
};

test.skipIf(!hasGo)("with its least values the chart is what kubernetes.yaml is", async () => {
  const [service, set] = await resourcesOf(MINIMAL);
  const given = Bun.YAML.parse(readFileSync(join(ROOT, "deploy/kubernetes.yaml"), "utf8")) as Resource[];
  const [givenService, givenSet] = given as [Resource, Resource];
  expect([service!.kind, set!.kind]).toEqual(["Service", "StatefulSet"]);
  expect(service!.spec["ports"]).toEqual(givenService.spec["ports"]);
  expect(set!.spec["volumeClaimTemplates"]).toEqual(givenSet.spec["volumeClaimTemplates"]);
  const podOf = ({ spec }: Resource) => spec["template"].spec;
  const { imagePullPolicy, ...container } = podOf(set!).containers[0];
  expect(imagePullPolicy).toBe("IfNotPresent");
  expect({ ...podOf(set!), containers: [container] }).toEqual(podOf(givenSet));
  expect(podOf(set!).containers[0].image).toBe(`registry.example.com/assay:${packageJson.version}`);
  expect(set!.spec["template"].metadata.labels).toMatchObject(service!.spec["selector"]);
  expect(set!.spec["template"].metadata.labels).toMatchObject(set!.spec["selector"].matchLabels);
});

test.skipIf(!hasGo)("several servers share a database and a bucket, and have no volume", async () => {
  const resources = await resourcesOf(FULL, "ci");
  expect(resources.map(({ kind, metadata }) => `${kind} ${metadata.name}`)).toEqual([
    ...["PodDisruptionBudget ci-assay", "Ingress ci-assay", "Service ci-assay", "StatefulSet ci-assay"],
  ]);
  const [, ingress, , set] = resources;
  expect(ingress!.spec).toMatchObject({
    ...{ ingressClassName: "nginx", tls: [{ secretName: "tls", hosts: ["assay.example.com"] }] },
    rules: [{ http: { paths: [{ backend: { service: { name: "ci-assay", port: { name: "http" } } } }] } }],
  });
  expect(set!.spec).toMatchObject({ replicas: 3, podManagementPolicy: "Parallel" });
  expect(set!.spec["volumeClaimTemplates"]).toBeUndefined();
  const { containers, volumes } = set!.spec["template"].spec;
  expect(volumes.map(({ name }: { name: string }) => name)).toEqual(["temporary", "data"]);
  const variables = containers[0].env.map(({ name, value, valueFrom }: any) => [name, value ?? valueFrom.secretKeyRef]);
  expect(Object.fromEntries(variables)).toEqual({
    ...{ PUBLIC_URL: "https://assay.example.com", TRUST_PROXY: "10.0.0.0/8,fd00::/8", DATA_DIR: "/data/assay" },
    ...{ SECRET_KEY: { name: "assay", key: "secret-key" }, DATABASE_URL: { name: "postgres", key: "uri" } },
    ...{ ATTACHMENTS_S3: "s3://acme/attachments", S3_ENDPOINT: "https://minio.example", S3_REGION: "eu-1" },
    ...{ RETENTION_DAYS: "365", LOG_LEVEL: "debug" },
  });
  expect(containers[0].envFrom).toEqual([
    ...[{ secretRef: { name: "s3" } }, { secretRef: { name: "oidc" } }, { configMapRef: { name: "more" } }],
  ]);
});

test.skipIf(!hasGo).each<[values: object, message: string]>([
  [{}, "publicUrl is missing"],
  [{ publicUrl: "https://a.example" }, "secretKey.existingSecret is missing: create it with kubectl --namespace tests"],
  [{ ...MINIMAL, replicas: 2 }, "replicas: several servers need database.existingSecret and attachments.s3"],
  [{ ...MINIMAL, replicas: 2, database: { existingSecret: "d" } }, "replicas: several servers need"],
  [{ ...MINIMAL, ingress: { enabled: true } }, "ingress.host is missing"],
])("%j is refused", async (values, message) => {
  const { code, errors } = await render(values);
  expect([code, errors]).toEqual([1, expect.stringContaining(message)]);
});

test.skipIf(!hasGo || !isReachable)(
  "the resources are those of Kubernetes: no field is unknown, and no value is of another type",
  async () => {
    const plain = Bun.YAML.parse(readFileSync(join(ROOT, "deploy/kubernetes.yaml"), "utf8")) as Resource[];
    const resources = [...plain, ...(await resourcesOf(MINIMAL)), ...(await resourcesOf(FULL))];
    writeFileSync(join(folder, "package.json"), JSON.stringify({ type: "module" }));
    const packages = ["kubernetes-models@5.1.0", "typescript@5.9.3"];
    expect(await run(["npm", "install", "--no-audit", "--no-fund", ...packages])).toMatchObject({ code: 0 });
    const kinds = [...new Map(resources.map(({ apiVersion, kind }) => [kind, apiVersion]))];
    const imports = kinds.map(
      ([kind, version]) => `import { ${kind}, type I${kind} } from "kubernetes-models/${version}";`,
    );
    const checks = resources.map(
      (one, index) => `const r${index}: I${one.kind} = ${JSON.stringify(one)};\nnew ${one.kind}(r${index}).validate();`,
    );
    writeFileSync(join(folder, "check.ts"), [...imports, ...checks].join("\n"));
    const options = ["--strict", "--module", "nodenext", "--target", "es2022", "--skipLibCheck"];
    expect(await run(["npx", "--no-install", "tsc", ...options, "check.ts"])).toEqual({
      code: 0,
      output: "",
      errors: "",
    });
    expect(await run(["node", "check.js"])).toEqual({ code: 0, output: "", errors: "" });
    // An unknown field is found.
    writeFileSync(
      join(folder, "check.ts"),
      [...imports, ...checks].join("\n").replaceAll('"periodSeconds"', '"periodSecond"'),
    );
    expect((await run(["npx", "--no-install", "tsc", ...options, "check.ts"])).output).toContain("periodSecond");
  },
  180_000,
);
