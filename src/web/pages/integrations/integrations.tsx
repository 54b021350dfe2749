/** The pages and forms of integrations: settings, deliveries, test messages and redeliveries. */

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
