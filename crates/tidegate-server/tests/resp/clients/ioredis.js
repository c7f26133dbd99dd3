// ioredis, and iovalkey, which came from it.
async function main([name, port, protocol, password]) {
  const Redis = require(name);
  // A protocol of 0 is whichever the client speaks by itself.
  const options = protocol === "0" ? {} : { protocol: Number(protocol) };
  const client = new Redis({
    port: Number(port),
    ...(password && { password }),
    ...options,
    connectionName: "of-the-test",
    retryStrategy: null,
  });
  client.on("error", (error) => {
    throw error;
  });
  const throttle = (...rest) => client.call("CL.THROTTLE", "io", 15, 30, 60, ...rest);
  const told = { ping: await client.ping() };
  told.first = await throttle();
  told.rest = await throttle(15);
  told.denied = await throttle();
  told.check = await client.call("TG.CHECK", "api", "io", 2);
  const pipe = client.pipeline();
  for (let n = 0; n < 1000; n++) pipe.call("CL.THROTTLE", "io-pipe", 999, 1000, 3600);
  told.pipeline = (await pipe.exec()).map(([error, reply]) => error ?? reply[2]);
  told.error = await client.call("CL.THROTTLE", "io", 15, 0, 60).catch((e) => e.message.replace("ERR ", ""));
  told.role = /role:(\w+)/.exec(await client.info())[1];
  await client.quit();
  console.log(JSON.stringify(told));
}

main(process.argv.slice(2));
