/** Every page of the dashboard, a family a line. */

import { docs } from "./docs.ts";
import { home } from "./home.ts";
import { lives } from "./live.ts";
import { projects } from "./projects.ts";
import type { Page } from "./page.ts";

export const PAGES: readonly Page[] = [...home, ...projects, ...lives, ...docs];
