/** Every page of the dashboard, a family a line. */

import { account } from "./account.ts";
import { audit } from "./audit.ts";
import { automations } from "./automations.ts";
import { bugs } from "./bugs.ts";
import { docs } from "./docs.ts";
import { environments } from "./environments.ts";
import { executions } from "./executions.ts";
import { home } from "./home.ts";
import { integrations } from "./integrations.ts";
import { invitations } from "./invitations.ts";
import { lives } from "./live.ts";
import { logInPages } from "./log_in.ts";
import { members } from "./members.ts";
import { onboardingPages } from "./onboarding.ts";
import { keys } from "./keys.ts";
import { projectSettings } from "./project_settings.ts";
import { projects } from "./projects.ts";
import { runners } from "./runners.ts";
import { search } from "./search.ts";
import { shares } from "./shares.ts";
import { taskLogs } from "./task_logs.ts";
import { tasks } from "./tasks.ts";
import { teamSettings } from "./team_settings.ts";
import { tests } from "./tests.ts";
import { uploads } from "./uploads.ts";
import type { Page } from "./page.ts";

export const PAGES: readonly Page[] = [
  ...home,
  ...logInPages,
  ...invitations,
  ...account,
  ...projects,
  ...members,
  ...audit,
  ...lives,
  ...executions,
  ...tasks,
  ...taskLogs,
  ...tests,
  ...bugs,
  ...search,
  ...projectSettings,
  ...keys,
  ...teamSettings,
  ...environments,
  ...integrations,
  ...automations,
  ...runners,
  ...onboardingPages,
  ...uploads,
  ...shares,
  ...docs,
];
