/** Which line of builds an execution belongs to. */

/**
 * Its branch; where it names none, the default one. The branch of a fork may have the name of the default branch: such a pull
 * request is a line of its own, as `pull/12`.
 */
export function lineOf(
  { branch, pullRequest }: { branch: string | null; pullRequest: string | null },
  defaultBranch: string,
): string {
  const line = branch ?? defaultBranch;
  return line === defaultBranch && pullRequest !== null ? `pull/${pullRequest}` : line;
}
