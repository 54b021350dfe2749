/** Who may import whom: folders are layers, and the table below is the house's plan. */

import { expect, test } from "bun:test";
import { Glob } from "bun";
import { join } from "node:path";

const SOURCE = join(import.meta.dir, "../src");

/** A line names a folder or file of `src`, and after the colon what belongs to it; a line that is indented further goes on. */
const readTable = (text: string): Record<string, string[]> =>
  Object.fromEntries(
    text
      .trim()
      .split(/\n {2}(?=\w)/)
      .map((line) => line.split(":"))
      .map(([name, list]) => [name!, list!.trim().split(/\s+/)]),
  );

/** A part is a folder or a file of `src`. A data file, which imports nothing, is a part of its own wherever it lies. */
const MAY_IMPORT = readTable(`
  main: config database executable file_failure http log misspelt operations server store
  server: api attachments config database http log mcp operations request schema secrets store web work
  web: attachments database executable http log openapi.json operations request rules schema secrets senders store
    wording
  request: attachments database http log rules schema secrets store
  api: attachments database http operations reports request rules schema secrets senders store wording
  mcp: http input_schemas.json rules schema wording
  work: attachments config database executable log operations rules schema secrets store wording
  operations: attachments backup database executable reports rules schema secrets senders store turns wording
  cli: attachments backup config database doctor executable file_failure history http log main mcp misspelt
    operations reports rules runner schema secrets store wording
  doctor: attachments config database executable file_failure http misspelt secrets store wording
  history: file_failure reports
  runner: log reports rules schema secrets
  senders: http schema secrets wording
  store: database rules schema
  wording: rules schema
  rules: reports schema
  reports: schema
  secrets: schema turns
  config: attachment_config attachments file_failure http log misspelt rules
  misspelt:
  turns:
  attachment_config: attachments
  attachments:
  backup: file_failure
  file_failure:
  http: turns
  log: secrets
  database: executable file_failure http
  executable:
  schema:
`);

/** Files that their neighbours in the folder may import; elsewhere neighbours are strangers. */
const SHARED = readTable(`
  attachments: content media_type spool
  api: execution_fields failure_fields
  backup: complete_file format frames
  cli: admin_accounts admin_options admin_trust annotations attempts base_commit bisect_case bisect_lines bisect_options bisect_probe
    bisect_range bisect_server ci ci_key client client_commands export_attachments export_lines command_line gate help_text
    import_lines import_options import_server interruption invocation machine main output owners_file process_io
    quarantined retry_options shard_option split_files split_options split_request tags terminal test_command upload_address upload_output usage why_lines wrapped_command
  history: build files
  http: address body connection_failure descriptors fair_queue html input outbound problem target
  database: binaries compose connect delete_portion database_url exclusive home lock locks owner_gate relations server time_bounds
    silence watched_pool
  secrets: escapes
  rules: absent_tests ansi blame branch ci_systems codeowners commit culprit culprit_suspects digest_table drawn_name execution
    fingerprint flaky_rates gate identity odds_facts odds_units outside outside_of_tests owner_patterns palette plan randomness report_path rerun_cases
    rerun_insertion rerun_pattern rerun_selections rerun_tools search_words shards shell stack through_child variants
  reports: cpp_checks cucumber_steps fields go js_tools json json_lines junit_case junit_names junit_outcome junit_times playwright pytest report
    rounds subunit_packets tap_cases tap_plan tap_point tap_source teamcity_cases teamcity_messages text totals unknown_results
    unpack xml_limits xml_syntax zip
  schema: absent_tests attachments automation_actions automation_runs bounded bug_reports case_ref commits culprit_searches deliveries digest
    environments events executions failures fields gate integration_configs integrations known_bugs leases live page
    planned_tasks private_key pull_requests slower tags verifications
  senders: comment_target github_app github_check_run sender
  store: baselines bug_cases bug_filter bug_fingerprints case_ref causes commits culprit_searches
    default_branch durations execution_list execution_of_build execution_tasks executions failures filter_options
    gate health instance integrations judged_runs keys lease_offers leases outcome overview owners packing plans past_days predicates
    probes restored runner_presence shards state task_runs test_case_filter verifications
  wording: absent_tests missing_runner blame case_title execution_name first_line flake_rate known_bug numbers reasons single_line task
  work: loop
`);
/** Folders in which one step leads to the next. */
const STEPS = ["doctor", "mcp", "operations", "request", "runner", "server", "web"];
/** Files that put their neighbours together. */
const GATHERERS = readTable(`
  attachments: store
  cli: assay client_commands import upload upload_output
  store: report_writes
  work: loops
  reports: parts read readers source xml xml_divide xml_repair
  senders: send
  database: open postgres/embedded
`);

const files = [...new Glob("**/*.{ts,tsx}").scanSync(SOURCE)].sort();
/** Type imports count as well: they are dependencies of the reader, too. */
const importsOf = async (file: string) => {
  const text = await Bun.file(join(SOURCE, file)).text();
  return [...text.matchAll(/\bfrom "(\.[^"]+)"/g)].map(([, path]) => path!);
};

const partOf = (path: string) => {
  if (path.endsWith(".json")) return path.split("/").pop()!;
  return path.includes("/") ? path.split("/")[0]! : path.replace(/\.tsx?$/, "");
};

test("imports run one way", async () => {
  const wrong: string[] = [];
  for (const file of files)
    for (const path of await importsOf(file)) {
      const target = join(file, "..", path).replaceAll("\\", "/");
      const [from, to] = [partOf(file), partOf(target)];
      if (target.startsWith("..") || from === to) continue;
      if (!MAY_IMPORT[from]?.includes(to)) wrong.push(`${file} imports ${target}`);
    }
  expect(wrong).toEqual([]);
});

test("neighbours in a folder do not import each other, except its shared files", async () => {
  const wrong: string[] = [];
  for (const file of files.filter((file) => file.includes("/"))) {
    const [, folder, own] = /^(\w+)\/(.*)\.tsx?$/.exec(file)!;
    if (STEPS.includes(folder!) || GATHERERS[folder!]?.includes(own!)) continue;
    for (const path of await importsOf(file)) {
      const target = join(file, "..", path);
      if (partOf(target) !== partOf(file)) continue;
      const name = target
        .split("/")
        .pop()!
        .replace(/\.tsx?$/, "");
      if (!SHARED[partOf(file)]?.includes(name)) wrong.push(`${file} imports ${target}`);
    }
  }
  expect(wrong).toEqual([]);
});

test("a page uses components, the site and files of its own folder, and no other page", async () => {
  const roomOf = (file: string) => file.split("/")[1]!;
  const familyOf = (file: string) => file.split("/")[2]!;
  const pages = files.filter((file) => file.startsWith("web/"));
  expect(pages.length).toBeGreaterThan(40);
  const wrong: string[] = [];
  for (const file of pages.filter((file) => file !== "web/site/pages.ts"))
    for (const path of await importsOf(file)) {
      const target = join(file, "..", path);
      if (!target.startsWith("web/pages/")) continue;
      if (roomOf(file) !== "pages" || familyOf(file) !== familyOf(target)) wrong.push(`${file} imports ${target}`);
    }
  expect(wrong).toEqual([]);
});

test("no import runs in a circle", async () => {
  const graph = new Map<string, string[]>();
  for (const file of files)
    graph.set(
      file,
      (await importsOf(file)).map((path) => join(file, "..", path)).filter((path) => /\.tsx?$/.test(path)),
    );
  const done = new Set<string>();
  const visit = (file: string, path: string[]): void => {
    if (path.includes(file)) throw new Error(`A circle: ${[...path, file].join(" → ")}`);
    if (done.has(file)) return;
    for (const next of graph.get(file) ?? []) visit(next, [...path, file]);
    done.add(file);
  };
  for (const file of files) visit(file, []);
  expect(done.size).toBeGreaterThanOrEqual(files.length);
});

test("no exported name means two things", async () => {
  const owners = new Map<string, string[]>();
  // The compiler prescribes the names of the runtime of TSX.
  // The parts of a page are seen only in its folder.
  const isSeen = (file: string) => file !== "http/jsx_runtime.ts" && !file.startsWith("web/pages/");
  for (const file of files.filter(isSeen)) {
    const text = await Bun.file(join(SOURCE, file)).text();
    const exported = /^export (?:async )?(?:type|const|function\*?|class) (\w+)/gm;
    for (const [, name] of text.matchAll(exported)) owners.set(name!, [...(owners.get(name!) ?? []), file]);
  }
  const shared = [...owners].filter(([, files]) => new Set(files).size > 1);
  expect(owners.size).toBeGreaterThan(1_000);
  expect(shared).toEqual([]);
});

test("every file opens with a sentence that says what it is for, and none hides in a drawer", async () => {
  for (const file of files) {
    expect([file, (await Bun.file(join(SOURCE, file)).text()).startsWith("/** ")]).toEqual([file, true]);
    expect(file).not.toMatch(/utils|helpers|common|misc|services|manager|\blib\b|index\.ts|mod\.ts/);
    expect(file).toMatch(/^[a-z0-9_/]+\.tsx?$/);
  }
});

test("only one file of the server makes requests: where they may go is decided there", async () => {
  for (const file of files.filter((file) => file !== "http/outbound.ts" && file !== "cli/client.ts"))
    expect([file, /(?:await|return|=|\() *fetch\(/.test(await Bun.file(join(SOURCE, file)).text())]).toEqual([
      file,
      false,
    ]);
});

test("only the store and the database speak SQL", async () => {
  for (const file of files.filter((file) => !/^(store|database)\//.test(file)))
    expect([file, /\b(?:sql|tx|pool|fast)(?:<[^`]*>)?`/.test(await Bun.file(join(SOURCE, file)).text())]).toEqual([
      file,
      false,
    ]);
});

test("only the entry points touch the process: environment, arguments, streams, working directory, signals and exit", async () => {
  const entries = ["main.ts", "cli/assay.ts", "cli/assay_cli.ts"];
  const touches =
    /process\.(?:env|argv|exit|stdin|stdout|stderr|cwd|on|once|off)\b|Bun\.(?:env|stdin|stdout|stderr)|console\./;
  const allowed: Record<string, RegExp> = {
    // The built-in PostgreSQL gets its PATH, and the log writes to standard output unless it is given a function.
    "database/postgres/home.ts": /process\.env\.PATH/g,
    "log.ts": /process\.stdout/g,
    // Gets the process as a parameter.
    "cli/process_io.ts": /Bun\.(?:stdin|stdout|stderr)|console\.(?:log|error)/g,
    "server/openapi.ts": /console\.log/g,
  };
  for (const file of files.filter((file) => !entries.includes(file))) {
    const text = await Bun.file(join(SOURCE, file)).text();
    expect([file, touches.exec(text.replace(allowed[file] ?? /(?!)/g, ""))?.[0]]).toEqual([file, undefined]);
  }
});
