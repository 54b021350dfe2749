/** Every page of the dashboard, a family a line. */

import { automations } from "./automations.ts";
import { environments } from "./environments.ts";
import { home } from "./home.ts";
import { integrations } from "./integrations.ts";
import { lives } from "./live.ts";
import { projectSettings } from "./project_settings.ts";
import { projects } from "./projects.ts";
import { runners } from "./runners.ts";
import { teamSettings } from "./team_settings.ts";
import type { Page } from "./page.ts";

export const PAGES: readonly Page[] = [
  ...home,
  ...projects,
  ...projectSettings,
  ...teamSettings,
  ...environments,
  ...integrations,
  ...automations,
  ...runners,
  ...lives,
];
