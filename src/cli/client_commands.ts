/** The commands of CI jobs and developers, most of which talk to a server over HTTP. A command is loaded when it runs. */

import type { Commands } from "./command_line.ts";

export const CLIENT_COMMANDS: Commands = {
  upload: {
    usage: `  upload FILE|GLOB… [options] [-- command …]
      run a command and upload its test reports, or upload existing reports`,
    help: async () => (await import("./upload_options.ts")).UPLOAD_HELP,
    run: async (...given) => await (await import("./upload.ts")).upload(...given),
  },
  import: {
    usage: `  import DIR [options]
      upload the reports of old builds in chronological order`,
    help: async () => (await import("./import_options.ts")).IMPORT_HELP,
    run: async (...given) => await (await import("./import.ts")).importHistory(...given),
  },
  split: {
    usage: `  split --shard 2/4 [options] [FILE|GLOB…|-]
      print the test files of one of several parallel jobs, balanced by duration`,
    help: async () => (await import("./split_options.ts")).SPLIT_HELP,
    run: async (...given) => await (await import("./split.ts")).split(...given),
  },
  runner: {
    usage: `  runner [options]
      run the tasks of a server on this machine`,
    help: async () => (await import("./runner.ts")).RUNNER_HELP,
    run: async (...given) => await (await import("./runner.ts")).runner(...given),
  },
  why: {
    usage: `  why [--branch NAME|--pull-request NUMBER|--execution ID]
      explain why a branch, a pull request or an execution is red`,
    help: async () => (await import("./why.ts")).WHY_HELP,
    run: async (...given) => await (await import("./why.ts")).why(...given),
  },
  quarantined: {
    usage: `  quarantined [--task NAME] [--format TOOL]
      list the tests that jobs leave out, or print the arguments that make a test tool do so`,
    help: async () => (await import("./quarantined.ts")).QUARANTINED_HELP,
    run: async (...given) => await (await import("./quarantined.ts")).quarantined(...given),
  },
  bisect: {
    usage: `  bisect [CASE] [--good REF] [options] -- COMMAND…
      find the commit that broke a test, also if the test is flaky`,
    help: async () => (await import("./bisect_options.ts")).BISECT_HELP,
    run: async (...given) => await (await import("./bisect.ts")).bisect(...given),
  },
  export: {
    usage: `  export FILE|- [--since DATE] [--until DATE] [--types LIST] [--attachments DIR]
  export --verify FILE [--attachments DIR]
      export the data of a project as lines of JSON, or verify an export`,
    help: async () => (await import("./export.ts")).EXPORT_HELP,
    run: async (...given) => await (await import("./export.ts")).exportProject(...given),
  },
};
