//! Mutates JSON.

use serde_json::{Value, json};
use skpca::Random;

use crate::choices::{odd, one_in};

/// Changes one value anywhere in the document.
pub fn mutate(random: &mut Random, value: &mut Value) {
    let count = nodes(value);
    let mut at = random.below(count);
    let from = nth(value, &mut random.below(count)).cloned().unwrap_or(Value::Null);
    let node = nth_mut(value, &mut at).expect("the index is below the count");
    match node {
        Value::Object(map) if !map.is_empty() && !one_in(random, 4) => {
            let key = map.keys().nth(random.below(map.len())).cloned().unwrap_or_default();
            match random.below(4) {
                0 => drop(map.remove(&key)),
                1 => drop(map.insert("more".into(), from)),
                _ => drop(map.insert(key, other(random, from))),
            }
        }
        Value::Array(list) if !list.is_empty() && !one_in(random, 4) => {
            let at = random.below(list.len());
            match random.below(4) {
                0 => drop(list.remove(at)),
                1 => list.push(from),
                2 => list.push(list[at].clone()),
                _ => list[at] = other(random, from),
            }
        }
        Value::Number(number) if !one_in(random, 3) => {
            let v = number.as_f64().unwrap_or(0.0);
            *node = match random.below(7) {
                0 => json!(v + 1.0),
                1 => json!(v - 1.0),
                2 => json!(-v),
                3 => json!(v * 1e-3),
                4 => json!(v as u64 + 1),
                5 => json!((v as u64).saturating_sub(1)),
                _ => other(random, from),
            };
        }
        node => *node = other(random, from),
    }
}

fn other(random: &mut Random, from: Value) -> Value {
    match random.below(12) {
        0 => Value::Null,
        1 => json!(one_in(random, 2)),
        2..5 => json!(odd(random)),
        5 => json!(random.below(10)),
        6 => json!([u64::MAX, u64::MAX / 2, 1 << 62, 1 << 53, 1 << 32, 1 << 20][random.below(6)]),
        7 => json!(["", "median", "x", "rbf", "NaN", "\u{0}\u{1b}[2J", "-", "0"][random.below(8)]),
        8 => json!("x".repeat(1 << random.below(12))),
        9 => json!([]),
        10 => json!({}),
        _ => from,
    }
}

fn nodes(value: &Value) -> usize {
    1 + match value {
        Value::Array(list) => list.iter().map(nodes).sum(),
        Value::Object(map) => map.values().map(nodes).sum(),
        _ => 0,
    }
}

fn nth<'a>(value: &'a Value, at: &mut usize) -> Option<&'a Value> {
    if *at == 0 {
        return Some(value);
    }
    *at -= 1;
    match value {
        Value::Array(list) => list.iter().find_map(|value| nth(value, at)),
        Value::Object(map) => map.values().find_map(|value| nth(value, at)),
        _ => None,
    }
}

fn nth_mut<'a>(value: &'a mut Value, at: &mut usize) -> Option<&'a mut Value> {
    if *at == 0 {
        return Some(value);
    }
    *at -= 1;
    match value {
        Value::Array(list) => list.iter_mut().find_map(|value| nth_mut(value, at)),
        Value::Object(map) => map.values_mut().find_map(|value| nth_mut(value, at)),
        _ => None,
    }
}
