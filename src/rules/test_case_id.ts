/** The id of a test case ends in its number, so that it is found by its number: an index of ids would cost as much. */

const NUMBER_DIGITS = 8;

/** `uuid` lends everything but its end. */
export const toTestCaseId = (uuid: string, number: number): string =>
  uuid.slice(0, -NUMBER_DIGITS) + number.toString(16).padStart(NUMBER_DIGITS, "0");

/** Returns the number in any UUID. Only the whole id identifies a test case. */
export const numberOfTestCase = (id: string): number => Number.parseInt(id.slice(-NUMBER_DIGITS), 16) | 0;
