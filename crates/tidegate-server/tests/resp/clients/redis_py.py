import json
import sys

import redis

port, protocol, password = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3] or None
# A protocol of 0 is whichever the client speaks by itself.
options = {"protocol": protocol} if protocol else {}
client = redis.Redis(port=port, password=password, decode_responses=True, client_name="of-the-test", **options)

told = {"ping": "PONG" if client.ping() else "no"}
throttle = lambda *rest: client.execute_command("CL.THROTTLE", "py", 15, 30, 60, *rest)
told["first"] = throttle()
told["rest"] = throttle(15)
told["denied"] = throttle()
told["check"] = client.execute_command("TG.CHECK", "api", "py", 2)
with client.pipeline(transaction=False) as pipe:
    for _ in range(1000):
        pipe.execute_command("CL.THROTTLE", "py-pipe", 999, 1000, 3600)
    told["pipeline"] = [reply[2] for reply in pipe.execute()]
try:
    client.execute_command("CL.THROTTLE", "py", 15, 0, 60)
except redis.ResponseError as error:
    told["error"] = str(error)
told["role"] = client.info()["role"]
assert client.client_getname() == "of-the-test"
assert client.client_info()["lib-name"].startswith("redis-py"), client.client_info()
assert client.echo("é") == "é" and client.dbsize() >= 2 and len(client.time()) == 2
assert client.config_get("save") == {"save": ""}, client.config_get("save")
assert "cl.throttle" in client.command()
assert client.command_count() == len(client.command())
client.close()
print(json.dumps(told))
