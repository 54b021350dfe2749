/** The pages and forms of tests. */

import type { Page } from "../../site/page.ts";
import { bulkChangeForm, cataloguePage } from "./catalogue.tsx";
import { ownerForm, quarantineForm, releaseForm } from "./changes.tsx";
import { testPage } from "./test.tsx";
import { cancelVerificationForm, verifyForm } from "./verifications.tsx";

export const tests: Page[] = [
  cataloguePage,
  bulkChangeForm,
  testPage,
  quarantineForm,
  releaseForm,
  ownerForm,
  verifyForm,
  cancelVerificationForm,
];
