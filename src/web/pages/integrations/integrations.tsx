/** Integrations of a team: what they are set to, what was delivered to them and how that went, tests and repeats. */

import type { Page } from "../../site/page.ts";
import { createIntegrationForm, newPage } from "./create.tsx";
import { changeForm, deleteForm, integrationPage, redeliverForm, stateForm, testForm } from "./integration.tsx";
import { listPage } from "./list.tsx";

export const integrations: Page[] = [
  listPage,
  newPage,
  createIntegrationForm,
  integrationPage,
  changeForm,
  stateForm,
  deleteForm,
  testForm,
  redeliverForm,
];
