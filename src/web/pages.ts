/** Every page of the dashboard, a family a line. */

import { account } from "./account.tsx";
import { audit } from "./audit.tsx";
import { automations } from "./automations.tsx";
import { bugs } from "./bugs.tsx";
import { docs } from "./docs.tsx";
import { environments } from "./environments.tsx";
import { executions } from "./executions.tsx";
import { home } from "./home.tsx";
import { integrations } from "./integrations.tsx";
import { invitations } from "./invitations.tsx";
import { lives } from "./live.ts";
import { logInPages } from "./log_in.tsx";
import { members } from "./members.tsx";
import { onboardingPages } from "./onboarding.tsx";
import { keys } from "./keys.tsx";
import { projectSettings } from "./project_settings.tsx";
import { projects } from "./projects.tsx";
import { runners } from "./runners.tsx";
import { search } from "./search.tsx";
import { shares } from "./shares.tsx";
import { taskLogs } from "./task_logs.tsx";
import { tasks } from "./tasks.tsx";
import { teamSettings } from "./team_settings.tsx";
import { tests } from "./tests.tsx";
import { uploads } from "./uploads.tsx";
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
