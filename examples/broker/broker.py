"""The operations of a small platform: domains, applications with cartridges, and keys.

Run workers for it with `interlock worker broker:app`; `web.py` is what users talk to. A request may
say which steps are to fail, and how often: `{"configure_dns": 2}` fails its first two attempts,
`{"undo start_gear": 9}` nine attempts to undo one, `{"write_key on domains/a/applications/b": 9}`
only those of one target. So retries and rollback can be watched.

Three habits make steps safe to repeat, and undos safe to run whatever the step came to:

- What is done is said as how it is to be (`put`, `take`), so that doing it twice is doing it once.
- What was there before is looked up by a step of its own: it is recorded before anything changes.
- The fencing token goes along with each change, so that a worker that was out of touch is refused.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta

from infrastructure import Infrastructure
from interlock import App, Context, Retry

app = App("broker")
world = Infrastructure(Path(os.environ.get("BROKER_ROOT", "broker-data")))

#: Arguments are validated when an operation is asked for: what does not fit never gets here.
Name = Annotated[str, Meta(pattern="^[a-z0-9-]{1,40}$")]
Text = Annotated[str, Meta(min_length=1, max_length=1000)]
Size = Literal["small", "large"]
ApplicationEvent = Literal["start", "stop", "restart", "scale-up", "scale-down"]
CartridgeEvent = Literal["start", "stop", "restart"]
#: Which attempts fail on purpose.
Fail = dict[str, Annotated[int, Meta(ge=0)]]

EAGER = Retry(limit=3, delay=0.2)


def finish(ctx: Context, fail: Fail) -> None:
    """Take a moment, and fail where that was asked for: when the step has done its deed already.

    Steps last `BROKER_STEP_S` seconds; only `BROKER_SLOW_STEP` does, if that names one.
    """
    what = f"undo {ctx.step}" if ctx.undoing else ctx.step
    if os.environ.get("BROKER_SLOW_STEP", what) == what:
        ctx.cancelled.wait(float(os.environ.get("BROKER_STEP_S", "0")))
        ctx.check()
    times = fail.get(f"{what} on {ctx.target}", fail.get(what, 0))
    if ctx.attempt <= times:
        raise RuntimeError(f"{what} was told to fail, attempt {ctx.attempt} of {times}")


# Steps that only look


@app.step()
def expect_application(ctx: Context, name: str, is_there: bool) -> None:
    """Refuse what cannot be done. Operations on one target take turns, so what is seen stays so."""
    if (world.value("gear", name) is not None) is not is_there:
        raise LookupError(f"application {name} is{' not' if is_there else ''} there")


@app.step()
def look_up(ctx: Context, kind: str, name: str) -> str | None:
    """What is there now, for whoever has to put it back."""
    return world.value(kind, name)


# Steps that act, each with what takes it back


@app.step(retries=EAGER, undo_retries=EAGER)
def reserve_gear(ctx: Context, name: str, size: Size, fail: Fail) -> str:
    """Find a machine with room, and keep that room."""
    world.put("gear", name, size, fence=ctx.fence)
    ctx.report(50, f"a {size} gear is reserved")
    finish(ctx, fail)
    return f"gear-of-{name.replace('/', '-')}"


@reserve_gear.undo
def release_gear(ctx: Context, name: str, fail: Fail) -> None:
    """Give the room back."""
    world.take("gear", name, fence=ctx.fence)
    finish(ctx, fail)


@app.step(retries=EAGER, undo_retries=EAGER)
def start_gear(ctx: Context, name: str, gear: str, fail: Fail) -> None:
    """Start what runs on it."""
    world.put("process", name, gear, fence=ctx.fence)
    finish(ctx, fail)


@start_gear.undo
def stop_gear(ctx: Context, name: str, fail: Fail) -> None:
    """Stop it again."""
    world.take("process", name, fence=ctx.fence)
    finish(ctx, fail)


@app.step(retries=EAGER, undo_retries=EAGER)
def configure_dns(ctx: Context, name: str, address: str, before: str | None, fail: Fail) -> str:
    """Have the world find it there."""
    world.put("dns", name, address, fence=ctx.fence)
    finish(ctx, fail)
    return address


@configure_dns.undo
def restore_dns(ctx: Context, name: str, before: str | None, fail: Fail) -> None:
    """Have the world find it where it did."""
    put_back(ctx, "dns", name, before)
    finish(ctx, fail)


@app.step(retries=EAGER, undo_retries=EAGER)
def forget_dns(ctx: Context, name: str, before: str | None, fail: Fail) -> None:
    """Have the world not find it any more."""
    world.take("dns", name, fence=ctx.fence)
    finish(ctx, fail)


@forget_dns.undo
def remember_dns(ctx: Context, name: str, before: str | None, fail: Fail) -> None:
    """Have the world find it again."""
    put_back(ctx, "dns", name, before)
    finish(ctx, fail)


@app.step(retries=EAGER, irreversible=True)
def destroy(ctx: Context, name: str, fail: Fail) -> None:
    """Destroy an application with all it has: from here on there is no way back."""
    for kind in ("key", "cartridge"):
        for thing in world.things(kind, f"{name}/"):
            world.take(kind, thing, fence=ctx.fence)
    for kind in ("process", "gear"):
        world.take(kind, name, fence=ctx.fence)
    finish(ctx, fail)


@app.step(retries=EAGER)
def signal(ctx: Context, name: str, event: str, fail: Fail) -> None:
    """Tell an application or a cartridge: there is nothing to take back."""
    ctx.log(f"{name}: {event}")
    finish(ctx, fail)


@app.step(retries=EAGER, undo_retries=EAGER, before_retry="RollBackFirst")
def write(ctx: Context, kind: str, name: str, value: str, before: str | None, fail: Fail) -> None:
    """Have a cartridge, a key or a domain's name there; a retry begins from what was before."""
    world.put(kind, name, value, fence=ctx.fence)
    finish(ctx, fail)


@app.step(retries=EAGER, undo_retries=EAGER)
def remove(ctx: Context, kind: str, name: str, before: str | None, fail: Fail) -> None:
    """Have it away."""
    world.take(kind, name, fence=ctx.fence)
    finish(ctx, fail)


@write.undo
def unwrite(ctx: Context, kind: str, name: str, before: str | None, fail: Fail) -> None:
    """Have it as it was."""
    put_back(ctx, kind, name, before)
    finish(ctx, fail)


@remove.undo
def unremove(ctx: Context, kind: str, name: str, before: str | None, fail: Fail) -> None:
    """Have it as it was."""
    put_back(ctx, kind, name, before)
    finish(ctx, fail)


def put_back(ctx: Context, kind: str, name: str, before: str | None) -> None:
    """Have something as it was before, or away if it was not there."""
    if before is None:
        world.take(kind, name, fence=ctx.fence)
    else:
        world.put(kind, name, before, fence=ctx.fence)


# Operations on applications

APPLICATION = "domains/{domain}/applications/{application}"


@app.operation(target=APPLICATION, title="Create application '{application}'")
def create_application(domain: Name, application: Name, size: Size, fail: Fail) -> str:
    """Make an application that the world can reach."""
    name = f"{domain}/{application}"
    expect_application(name, is_there=False)
    gear = reserve_gear(name, size, fail)
    start_gear(name, gear, fail)
    address = configure_dns(name, f"{application}-{domain}.example.org", None, fail)
    signal(name, "it is there", fail)
    return address


@app.operation(target=APPLICATION, title="Delete application '{application}'")
def delete_application(domain: Name, application: Name, fail: Fail) -> None:
    """Let an application go."""
    name = f"{domain}/{application}"
    expect_application(name, is_there=True)
    forget_dns(name, look_up("dns", name), fail)
    destroy(name, fail)


@app.operation(target=APPLICATION, title="{event} application '{application}'")
def application_event(domain: Name, application: Name, event: ApplicationEvent, fail: Fail) -> None:
    """Start, stop, restart or scale an application."""
    expect_application(f"{domain}/{application}", is_there=True)
    signal(f"{domain}/{application}", event, fail)


@app.operation(target=APPLICATION, title="Add {cartridge} to '{application}'")
def add_cartridge(domain: Name, application: Name, cartridge: Name, fail: Fail) -> None:
    """Add a cartridge, and have the application see it."""
    name = f"{domain}/{application}"
    expect_application(name, is_there=True)
    before = look_up("cartridge", f"{name}/{cartridge}")
    write("cartridge", f"{name}/{cartridge}", "installed", before, fail)
    signal(name, "restart", fail)


@app.operation(target=APPLICATION, title="Remove {cartridge} from '{application}'")
def remove_cartridge(domain: Name, application: Name, cartridge: Name, fail: Fail) -> None:
    """Remove a cartridge, and have the application see it."""
    name = f"{domain}/{application}"
    expect_application(name, is_there=True)
    before = look_up("cartridge", f"{name}/{cartridge}")
    remove("cartridge", f"{name}/{cartridge}", before, fail)
    signal(name, "restart", fail)


@app.operation(target=APPLICATION, title="{event} {cartridge} of '{application}'")
def cartridge_event(
    domain: Name, application: Name, cartridge: Name, event: CartridgeEvent, fail: Fail
) -> None:
    """Start, stop or restart a cartridge."""
    name = f"{domain}/{application}"
    expect_application(name, is_there=True)
    signal(f"{name}/{cartridge}", event, fail)


# Parts of what is done to domains and users: one for every application, on its own target


@app.operation(target=APPLICATION, title="Move '{application}' to the new name of its domain")
def move_application(domain: Name, application: Name, to: Name, fail: Fail) -> str:
    """Have the world find an application by the new name of its domain."""
    name = f"{domain}/{application}"
    before = look_up("dns", name)
    return configure_dns(name, f"{application}-{to}.example.org", before, fail)


@app.operation(target=APPLICATION, title="Give key '{key}' to '{application}'")
def give_key(domain: Name, application: Name, key: Name, content: Text, fail: Fail) -> None:
    """Let a key into an application."""
    place = f"{domain}/{application}/{key}"
    write("key", place, content, look_up("key", place), fail)


@app.operation(target=APPLICATION, title="Take key '{key}' from '{application}'")
def take_key(domain: Name, application: Name, key: Name, fail: Fail) -> None:
    """Let a key into an application no more."""
    place = f"{domain}/{application}/{key}"
    remove("key", place, look_up("key", place), fail)


# Operations on domains and users


def applications(prefix: str = "") -> list[tuple[str, str]]:
    """The domain and the name of each application there is."""
    return [(name.split("/")[0], name.split("/")[1]) for name in world.things("gear", prefix)]


@app.operation(target="domains/{domain}", title="Rename domain '{domain}' to '{to}'")
def update_domain(domain: Name, to: Name, fail: Fail) -> None:
    """Give a domain another name, and move all its applications there."""
    write("domain", domain, to, look_up("domain", domain), fail)
    for _, application in applications(f"{domain}/"):
        app.child(move_application, domain, application, to, fail)


@app.operation(target="users/{user}", title="Add key '{key}'")
def add_key(user: Name, key: Name, content: Text, fail: Fail) -> None:
    """Let a key of a user into all applications."""
    place = f"users/{user}/{key}"
    write("key", place, content, look_up("key", place), fail)
    for domain, application in applications():
        app.child(give_key, domain, application, key, content, fail)


@app.operation(target="users/{user}", title="Change key '{key}'")
def update_key(user: Name, key: Name, content: Text, fail: Fail) -> None:
    """Exchange a key of a user in all applications."""
    place = f"users/{user}/{key}"
    write("key", place, content, look_up("key", place), fail)
    for domain, application in applications():
        app.child(give_key, domain, application, key, content, fail)


@app.operation(target="users/{user}", title="Delete key '{key}'")
def delete_key(user: Name, key: Name, fail: Fail) -> None:
    """Let a key of a user into no application any more."""
    place = f"users/{user}/{key}"
    remove("key", place, look_up("key", place), fail)
    for domain, application in applications():
        app.child(take_key, domain, application, key, fail)
