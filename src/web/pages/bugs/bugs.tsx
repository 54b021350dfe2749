/** The pages and forms of bugs. */

import type { Page } from "../../site/page.ts";
import { bugPage } from "./bug.tsx";
import { cancelSearchForm, searchForm } from "./culprit.tsx";
import { editBugForm, newBugForm, newBugPage, statusForm, takeForm } from "./edit.tsx";
import { bugListPage, triageForm } from "./list.tsx";
import { mergeForm, mergePage } from "./merge.tsx";

export const bugs: Page[] = [
  bugListPage,
  triageForm,
  newBugPage,
  newBugForm,
  bugPage,
  editBugForm,
  statusForm,
  takeForm,
  mergePage,
  mergeForm,
  searchForm,
  cancelSearchForm,
];
