//! The text of scripts for the kinds of limits a plan has, in its order: straight-line code without tables.

/// Sets w to floor(a * b / c) and r to the rest, for b < c < 2^45 and a up to 2^53: Horner's rule over a's digits.
const DIVIDE: &str = "
        local digits, n = {}, 0
        for _ = 1, 8 do
          if a == 0 then break end
          n = n + 1
          digits[n] = a % 128
          a = (a - digits[n]) / 128
        end
        w, r = 0, 0
        for i = n, 1, -1 do
          local x = r * 128 + b * digits[i]
          r = x % c
          w = w * 128 + (x - r) / c
        end";

/// What one limit adds to a script. `#` stands for its number, `@` for [`DIVIDE`].
struct Part {
    /// Its figures.
    figures: &'static str,
    /// Its fields in the record.
    fields: &'static str,
    /// What they are of a key never seen.
    untouched: &'static str,
    /// Brings the fields to the instant t, and sets room to what would be admitted.
    hold: &'static str,
    /// Charges.
    charge: &'static str,
    /// Sets ends to the microseconds until it is as new.
    ends: &'static str,
}

const BUCKET: Part = Part {
    figures: "C#,A#,R#,P#",
    fields: "q#,f#",
    untouched: "C#,0",
    hold: "
    if e > 0 and q# < C# then
      local w = e * A#
      if w >= C# - q# then q#, f# = C#, 0 else
        q# = q# + w
        if R# > 0 then
          local g, r = e * R#
          if g < 9007199254740992 then r = g % P#; w = (g - r) / P# else
            local a, b, c = e, R#, P#
            @
          end
          f# = f# + r
          if f# >= P# then f# = f# - P#; w = w + 1 end
          q# = q# + w
          if q# >= C# then q#, f# = C#, 0 end
        end
      end
    end
    room = q#",
    charge: "q# = q# - cost",
    ends: "(C# - q#) * P# / (A# * P# + R#)",
};

const FIXED: Part = Part {
    figures: "L#,W#,M#",
    fields: "n#",
    untouched: "0",
    hold: "
    local e# = t % W#
    if last < t - e# then n# = 0 end
    room = L# - (n# > M# and M# or n#)",
    charge: "n# = n# + cost",
    ends: "W# - e#",
};

const COUNTER: Part = Part {
    figures: "L#,W#,M#",
    fields: "p#,n#",
    untouched: "0,0",
    hold: "
    local e# = t % W#
    if last < t - e# then
      if last >= t - e# - W# then p#, n# = n#, 0 else p#, n# = 0, 0 end
    end
    local w, m = p#, n#
    if w > M# then w = M# end
    if m > M# then m = M# end
    if e# > 0 and w > 0 then
      local g, r = w * (W# - e#)
      if g < 9007199254740992 then r = g % W#; w = (g - r) / W# else
        local a, b, c = w, W# - e#, W#
        @
      end
      if r > 0 then w = w + 1 end
    end
    room = L# - m - w",
    charge: "n# = n# + cost",
    ends: "W# + W# - e#",
};

/// How many checks a script decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Checks {
    One,
    /// Any number, no two of one record: all are read at once.
    Distinct,
    /// Any number; records are read and written once, however many checks are of each.
    Many,
}

/// The script for limits of these kinds.
pub(super) fn source(kinds: &str, checks: Checks) -> String {
    let parts: Vec<&Part> = kinds.chars().map(part).collect();
    let of = |number: usize, text: &str| text.replace('#', &(number + 1).to_string()).replace('@', DIVIDE);
    let each = |text: fn(&Part) -> &'static str, between: &str| {
        let texts = parts.iter().enumerate().map(|(number, part)| of(number, text(part)));
        texts.collect::<Vec<_>>().join(between)
    };
    let fields = each(|part| part.fields, ",");
    let count = 1 + fields.split(',').count();
    let whole: Vec<String> = fields.split(',').map(|field| format!("{field} % 1 ~= 0")).collect();
    let hold = each(|part| part.hold, "\n    if room < least then least = room end");
    let ends: Vec<String> = parts
        .iter()
        .enumerate()
        .map(|(number, part)| format!("m = {}\n        if m > ends then ends = m end", of(number, part.ends)))
        .collect();
    let template = match checks {
        Checks::One => ONE,
        Checks::Distinct => DISTINCT,
        Checks::Many => MANY,
    };
    let figures = each(|part| part.figures, ",");
    let figured = figures.split(',').count();
    template
        .replace("$SEVERAL", SEVERAL)
        .replace("$REPLY", REPLY)
        .replace("$DECIDE", DECIDE)
        .replace("$HOLD", &hold)
        .replace("$CHARGE", &each(|part| part.charge, "\n        "))
        .replace("$ENDS", &ends.join("\n        "))
        .replace("$WHOLE", &whole.join(" or "))
        .replace("$UNTOUCHED", &each(|part| part.untouched, ","))
        .replace("$FIGURES", &figures)
        .replace("$READS", &"d".repeat(figured))
        .replace("$CONSTANTS", &(8 * (figured + 2)).to_string())
        .replace("$FIELDS", &fields)
        .replace("$PACKED", &"d".repeat(count))
        .replace("$BYTES", &(8 * count).to_string())
}

fn part(kind: char) -> &'static Part {
    match kind {
        'b' => &BUCKET,
        'c' => &COUNTER,
        _ => &FIXED,
    }
}

/// Decides one check of `cost`, or up to it, on the record `kept`: sets verdict, and where it is 1 and something was
/// charged, record and life.
const DECIDE: &str = "
  local last, $FIELDS = 0, $UNTOUCHED
  local verdict, record, life = 0
  if kept then
    if #kept == length + $BYTES and sub(kept, 1, length) == tag then
      last, $FIELDS = unpack('>$PACKED', kept, length + 1)
      if $WHOLE or last % 1 ~= 0 or last < 0 then verdict = 2 end
    else
      verdict = 2
    end
  end
  if verdict == 0 then
    local t = now
    if last > now then t = last end
    local e, least, room = t - last, 9007199254740992
$HOLD
    if room < least then least = room end
    if up_to == 1 then
      local most = cost
      if least < cost then cost = least end
      if cost < 1 and most > 0 then cost = 1 end
      if cost < 0 then cost = 0 end
    end
    if least >= cost then
      verdict = 1
      if cost > 0 then
        local ends, m = 0
        $CHARGE
        $ENDS
        life = ceil((t - now + ends) / 1000) + spare + 1
        if not (life < 1e15) then life = unending end
        record = tag .. pack('>$PACKED', t, $FIELDS)
      end
    end
  end";

const ONE: &str = "
local unpack, pack, call, sub, ceil = struct.unpack, struct.pack, redis.call, string.sub, math.ceil
local now, cost, up_to, $FIGURES, spare, unending = unpack('>ddd$READSdd', ARGV[1])
local tag = sub(ARGV[1], 25 + $CONSTANTS)
local length = #tag
local kept = call('GET', KEYS[1])
$DECIDE
if record then
  if life > 0 then
    call('SET', KEYS[1], record, 'PX', string.format('%d', life))
  else
    call('SET', KEYS[1], record)
  end
end
if verdict == 2 then return 'f' end
if kept then return (verdict == 1 and 'A' or 'R') .. kept end
return verdict == 1 and 'a' or 'r'
";

/// Between the decisions on several checks, which are all in one argument, and their answers, which are in one string:
/// an argument and an element of a reply cost the server as much as the arithmetic of a limit does.
const SEVERAL: &str = "
local table_unpack = unpack
local unpack, pack, call, sub, ceil = struct.unpack, struct.pack, redis.call, string.sub, math.ceil
local keys, checks = KEYS, ARGV[2]
local $FIGURES, spare, unending = unpack('>$READSdd', ARGV[1])
local tag = sub(ARGV[1], 1 + $CONSTANTS)
local length = #tag
local as_string, was, expires = string.format
local reply, at, now, cost, up_to = {}, 1
";

const DISTINCT: &str = "$SEVERAL
local found = call('MGET', table_unpack(keys))
-- What is no string is nothing to MGET, and an error to GET: before anything is written.
for i = 1, #keys do
  if not found[i] then call('GET', keys[i]) end
end
for i = 1, #keys do
  local key, kept = keys[i], found[i]
  now, cost, up_to, at = unpack('>ddd', checks, at)
$DECIDE
  if record then
    -- Many live as long as the one before.
    if life ~= was then was, expires = life, as_string('%d', life) end
    if life > 0 then call('SET', key, record, 'PX', expires) else call('SET', key, record) end
  end
$REPLY
end
return table.concat(reply)
";

const MANY: &str = "$SEVERAL
local seen, lives = {}, {}
for i = 1, #keys do
  local key = keys[i]
  now, cost, up_to, at = unpack('>ddd', checks, at)
  local kept = seen[key]
  if kept == nil then kept = call('GET', key) end
$DECIDE
  if record then
    seen[key], lives[key] = record, life
  else
    seen[key] = kept
  end
$REPLY
end
for key, life in pairs(lives) do
  if life ~= was then was, expires = life, as_string('%d', life) end
  if life > 0 then call('SET', key, seen[key], 'PX', expires) else call('SET', key, seen[key]) end
end
return table.concat(reply)
";

const REPLY: &str = "
  if verdict == 2 then
    reply[i] = 'f'
  elseif kept then
    reply[i] = (verdict == 1 and 'A' or 'R') .. kept
  else
    reply[i] = verdict == 1 and 'a' or 'r'
  end";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_placeholder_is_left() {
        for checks in [Checks::One, Checks::Distinct, Checks::Many] {
            let source = source("bfcb", checks).replace("#keys", "").replace("#tag", "").replace("#kept", "");
            assert!(!source.contains(['#', '@', '$']), "{source}");
        }
    }
}
