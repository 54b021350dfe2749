/** When a run says more about its surroundings than about its test cases. */

const MIN_FAILED = 10;
const SHARE = 0.8;

/** At least ten cases failed, and more than four in five of those that ran or were to run. */
export const isOutageRun = ({
  passed,
  failed,
  skipped,
}: {
  passed: number;
  failed: number;
  skipped: number;
}): boolean => failed >= MIN_FAILED && failed > SHARE * (passed + failed + skipped);
