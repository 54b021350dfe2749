/** All pages of the dashboard. */

import { account } from "../pages/account.tsx";
import { attachmentPages } from "../pages/attachments.ts";
import { audit } from "../pages/audit.tsx";
import { automations } from "../pages/automations/automation.tsx";
import { bugs } from "../pages/bugs/bug.tsx";
import { ciTrust } from "../pages/ci_trust.tsx";
import { docs } from "../pages/docs.tsx";
import { environments } from "../pages/environments/environment.tsx";
import { executions } from "../pages/executions/executions.tsx";
import { home } from "../pages/home.tsx";
import { infrastructureRules } from "../pages/infrastructure_rules/rule.tsx";
import { integrations } from "../pages/integrations/integration.tsx";
import { invitations } from "../pages/invitations.tsx";
import { lives } from "../pages/live.ts";
import { logInPages } from "../pages/log_in/log_in.tsx";
import { members } from "../pages/members.tsx";
import { onboardingPages } from "../pages/onboarding/onboarding.tsx";
import { keys } from "../pages/keys.tsx";
import { projectSettings } from "../pages/project_settings/project_settings.tsx";
import { projects } from "../pages/projects/projects.tsx";
import { runners } from "../pages/runners/runners.tsx";
import { search } from "../pages/search/search.tsx";
import { shares } from "../pages/shares/shares.tsx";
import { taskLogs } from "../pages/tasks/logs.tsx";
import { tasks } from "../pages/tasks/task_view.tsx";
import { teamSettings } from "../pages/team_settings/team_settings.tsx";
import { tests } from "../pages/tests/test.tsx";
import { uploads } from "../pages/uploads/uploads.tsx";
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
  ...attachmentPages,
  ...tests,
  ...bugs,
  ...search,
  ...projectSettings,
  ...keys,
  ...ciTrust,
  ...teamSettings,
  ...environments,
  ...integrations,
  ...automations,
  ...infrastructureRules,
  ...runners,
  ...onboardingPages,
  ...uploads,
  ...shares,
  ...docs,
];
