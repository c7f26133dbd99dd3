const { createClient } = require("redis");

async function main([port, protocol, password]) {
  // A protocol of 0 is whichever the client speaks by itself.
  const options = protocol === "0" ? {} : { RESP: Number(protocol) };
  const client = createClient({
    socket: { host: "127.0.0.1", port: Number(port), reconnectStrategy: false },
    ...(password && { password }),
    ...options,
  });
  client.on("error", (error) => {
    throw error;
  });
  await client.connect();
  const throttle = (...rest) => client.sendCommand(["CL.THROTTLE", "node", "15", "30", "60", ...rest]);
  const told = { ping: await client.ping() };
  told.first = await throttle();
  told.rest = await throttle("15");
  told.denied = await throttle();
  told.check = await client.sendCommand(["TG.CHECK", "api", "node", "2"]);
  const pipe = Array.from({ length: 1000 }, () =>
    client.sendCommand(["CL.THROTTLE", "node-pipe", "999", "1000", "3600"]),
  );
  told.pipeline = (await Promise.all(pipe)).map((reply) => reply[2]);
  told.error = await client.sendCommand(["CL.THROTTLE", "node", "15", "0", "60"]).catch((e) => e.message.replace("ERR ", ""));
  told.role = /role:(\w+)/.exec(await client.info())[1];
  await client.close();
  console.log(JSON.stringify(told));
}

main(process.argv.slice(2));
