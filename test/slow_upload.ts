/** An upload of which the server has the head, and waits for the rest. */

/** `answered`: what came back, or until the connection was closed. `finish` sends the rest of the body. */
export async function beginUpload(url: string, { project, key }: { project: string; key: string }, body: string) {
  const { hostname, port } = new URL(url);
  const { promise: answered, resolve } = Promise.withResolvers<string>();
  let answer = "";
  const socket = await Bun.connect({
    hostname,
    port: Number(port),
    socket: {
      data(_, chunk) {
        answer += chunk.toString();
        if (answer.includes("}")) resolve(answer);
      },
      close: () => resolve(answer),
    },
  });
  const head = `POST /api/v1/projects/${project}/test-runs HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer ${key}`;
  socket.write(`${head}\r\nContent-Length: ${body.length}\r\n\r\n${body.slice(0, 20)}`);
  return { answered, finish: () => void socket.write(body.slice(20)) };
}
