/** Questions and answers between two processes, over whatever carries messages between them in order. */

/** What one side answers, by the name of the question. */
export type Answers = Record<string, (value: never) => unknown>;

type Message =
  | { ask: string; id: number; value: unknown }
  | { answered: number; value: unknown }
  | { failed: number; message: string };

/** `mine` is what this side answers, `Theirs` what the other one does. */
export function createChannel<Theirs extends Answers>(send: (message: unknown) => void, mine: Answers) {
  const open = new Map<number, { resolve: (value: unknown) => void; reject: (error: Error) => void }>();
  let last = 0;
  let isClosed = false;

  function say(message: Message): void {
    // Whoever is gone is told nothing more; that it is gone is learnt elsewhere.
    if (!isClosed) send(message);
  }

  async function answer({ ask, id, value }: Extract<Message, { ask: string }>): Promise<void> {
    try {
      say({ answered: id, value: await mine[ask]!(value as never) });
    } catch (error) {
      say({ failed: id, message: error instanceof Error ? error.message : String(error) });
    }
  }

  return {
    /** Rejects with what the other side's answer failed with, or when the channel is closed. */
    ask<Name extends keyof Theirs & string>(
      name: Name,
      ...[value]: Parameters<Theirs[Name]>
    ): Promise<Awaited<ReturnType<Theirs[Name]>>> {
      if (isClosed) return Promise.reject(new Error("The other process has ended"));
      return new Promise((resolve, reject) => {
        open.set(++last, { resolve: resolve as (value: unknown) => void, reject });
        say({ ask: name, id: last, value });
      });
    },

    /** To be called with every message that comes. */
    receive(given: unknown): void {
      const message = given as Message;
      if ("ask" in message) return void answer(message);
      const id = "answered" in message ? message.answered : message.failed;
      const asked = open.get(id);
      open.delete(id);
      if ("answered" in message) asked?.resolve(message.value);
      else asked?.reject(new Error(message.message));
    },

    /** The other side is gone. */
    close(): void {
      isClosed = true;
      for (const { reject } of open.values()) reject(new Error("The other process has ended"));
      open.clear();
    },
  };
}

export type Channel<Theirs extends Answers> = ReturnType<typeof createChannel<Theirs>>;
