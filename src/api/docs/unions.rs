//! Tagged unions in a form that generators of clients understand.
//!
//! As they are derived, a variant without a name holds a named schema and the tag beside it, and a schema
//! into which a union is flattened is that union with members beside it. Generators want a named schema for
//! each variant, with the tag among its members. Works on the document as JSON; knows nothing of what it
//! says.

use std::collections::HashMap;

use serde_json::{Map, Value, json};

/// What references to schemas begin with.
const SCHEMAS: &str = "#/components/schemas/";

/// A variant as it is derived.
struct Variant {
    /// The schema that it holds.
    name: String,
    tag: String,
    value: String,
    tag_schema: Value,
}

/// Gives every variant of a tagged union a name and its tag.
pub(super) fn name_variants(document: &mut Value) {
    let mut uses = HashMap::new();
    count_uses(document, &mut uses);
    let Some(schemas) = document
        .pointer_mut("/components/schemas")
        .and_then(Value::as_object_mut)
    else {
        return;
    };
    let names: Vec<String> = schemas.keys().cloned().collect();
    for name in &names {
        if let Some(variants) = variants_of(schemas, name, &uses) {
            tag(schemas, name, variants);
        }
    }
    for name in &names {
        spread(schemas, name);
    }
}

/// How often each schema is referred to.
fn count_uses(value: &Value, uses: &mut HashMap<String, usize>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| count_uses(item, uses)),
        Value::Object(members) => {
            if let Some(name) = referred(value) {
                *uses.entry(name).or_default() += 1;
            }
            members.values().for_each(|member| count_uses(member, uses));
        }
        _ => {}
    }
}

fn referred(value: &Value) -> Option<String> {
    let name = value.get("$ref")?.as_str()?.strip_prefix(SCHEMAS)?;
    Some(name.to_owned())
}

fn reference(name: &str) -> Value {
    json!({"$ref": format!("{SCHEMAS}{name}")})
}

/// The variants of a union, if it is tagged, and if what they hold is held by nobody else.
fn variants_of(
    schemas: &Map<String, Value>,
    name: &str,
    uses: &HashMap<String, usize>,
) -> Option<Vec<Variant>> {
    let items = schemas.get(name)?.get("oneOf")?.as_array()?;
    let variants: Option<Vec<Variant>> = items.iter().map(variant).collect();
    variants.filter(|variants| variants.iter().all(|variant| uses.get(&variant.name) == Some(&1)))
}

fn variant(item: &Value) -> Option<Variant> {
    let [held, beside] = item.get("allOf")?.as_array()?.as_slice() else {
        return None;
    };
    let mut members = beside.get("properties")?.as_object()?.iter();
    let ((tag, schema), None) = (members.next()?, members.next()) else {
        return None;
    };
    let [value] = schema.get("enum")?.as_array()?.as_slice() else {
        return None;
    };
    Some(Variant {
        name: referred(held)?,
        tag: tag.clone(),
        value: value.as_str()?.to_owned(),
        tag_schema: schema.clone(),
    })
}

fn tag(schemas: &mut Map<String, Value>, name: &str, variants: Vec<Variant>) {
    let Some(property) = variants.first().map(|variant| variant.tag.clone()) else {
        return;
    };
    let mut mapping = Map::new();
    let mut items = Vec::new();
    for variant in variants {
        items.push(reference(&variant.name));
        mapping.insert(variant.value, json!(format!("{SCHEMAS}{}", variant.name)));
        let held = schemas.get_mut(&variant.name).and_then(Value::as_object_mut);
        let Some(held) = held else { continue };
        if let Some(required) = held.entry("required").or_insert_with(|| json!([])).as_array_mut() {
            required.push(json!(variant.tag));
        }
        if let Some(members) = held
            .entry("properties")
            .or_insert_with(|| json!({}))
            .as_object_mut()
        {
            members.insert(variant.tag, variant.tag_schema);
        }
    }
    if let Some(union) = schemas.get_mut(name).and_then(Value::as_object_mut) {
        union.insert("oneOf".to_owned(), Value::Array(items));
        let discriminator = json!({"propertyName": property, "mapping": mapping});
        union.insert("discriminator".to_owned(), discriminator);
    }
}

/// A union with members beside it becomes a union of variants that have these members.
fn spread(schemas: &mut Map<String, Value>, name: &str) -> Option<()> {
    let whole = schemas.get(name)?;
    let [union, beside] = whole.get("allOf")?.as_array()?.as_slice() else {
        return None;
    };
    let union = schemas.get(&referred(union)?)?;
    let (variants, discriminator) = (
        union.get("oneOf")?.as_array()?.clone(),
        union.get("discriminator")?.clone(),
    );
    let (beside, description) = (beside.clone(), whole.get("description").cloned());

    let members = format!("{name}Members");
    let of_variant = |variant: &str| format!("{variant}In{name}");
    let mut items = Vec::new();
    for variant in variants.iter().filter_map(referred) {
        let spread = json!({"allOf": [reference(&variant), reference(&members)]});
        schemas.insert(of_variant(&variant), spread);
        items.push(reference(&of_variant(&variant)));
    }
    let mapping: Map<String, Value> = discriminator
        .get("mapping")?
        .as_object()?
        .iter()
        .filter_map(|(value, variant)| {
            let variant = variant.as_str()?.strip_prefix(SCHEMAS)?;
            Some((value.clone(), json!(format!("{SCHEMAS}{}", of_variant(variant)))))
        })
        .collect();
    let property = discriminator.get("propertyName")?;
    let mut union = json!({"oneOf": items, "discriminator": {"propertyName": property, "mapping": mapping}});
    if let (Some(union), Some(description)) = (union.as_object_mut(), description) {
        union.insert("description".to_owned(), description);
    }
    schemas.insert(members, beside);
    schemas.insert(name.to_owned(), union);
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document() -> Value {
        let variant = |name: &str, tag: &str| {
            json!({"allOf": [reference(name), {"type": "object", "required": ["kind"],
                "properties": {"kind": {"type": "string", "enum": [tag]}}}]})
        };
        json!({"components": {"schemas": {
            "Circle": {
                "type": "object", "required": ["radius"], "properties": {"radius": {"type": "number"}},
            },
            "Point": {"type": "object"},
            "Shape": {
                "description": "A shape", "oneOf": [variant("Circle", "circle"), variant("Point", "point")],
            },
            "Drawn": {
                "description": "A shape on paper",
                "allOf": [reference("Shape"), {"type": "object", "properties": {"id": {"type": "string"}}}],
            },
            "Plain": {"oneOf": [reference("Drawn"), {"type": "null"}]},
        }}})
    }

    #[test]
    fn a_variant_has_its_tag_among_its_members() {
        let mut document = document();
        name_variants(&mut document);
        let schemas = &document["components"]["schemas"];
        assert_eq!(
            schemas["Shape"]["oneOf"],
            json!([reference("Circle"), reference("Point")])
        );
        assert_eq!(
            schemas["Shape"]["discriminator"],
            json!({"propertyName": "kind", "mapping":
                {"circle": "#/components/schemas/Circle", "point": "#/components/schemas/Point"}})
        );
        assert_eq!(schemas["Circle"]["required"], json!(["radius", "kind"]));
        assert_eq!(schemas["Point"]["properties"]["kind"]["enum"], json!(["point"]));
    }

    #[test]
    fn a_union_with_members_beside_it_is_a_union_of_whole_variants() {
        let mut document = document();
        name_variants(&mut document);
        let schemas = &document["components"]["schemas"];
        assert_eq!(schemas["Drawn"]["description"], "A shape on paper");
        assert_eq!(
            schemas["Drawn"]["oneOf"],
            json!([reference("CircleInDrawn"), reference("PointInDrawn")])
        );
        assert_eq!(
            schemas["CircleInDrawn"]["allOf"],
            json!([reference("Circle"), reference("DrawnMembers")])
        );
        assert_eq!(schemas["DrawnMembers"]["properties"]["id"]["type"], "string");
        assert_eq!(
            schemas["Drawn"]["discriminator"]["mapping"]["point"],
            "#/components/schemas/PointInDrawn"
        );
    }

    #[test]
    fn what_is_no_tagged_union_or_is_used_elsewhere_stays_as_it_is() {
        let mut document = document();
        document["paths"] = json!({"/": reference("Point")});
        let before = document.clone();
        name_variants(&mut document);
        assert_eq!(document, before);
    }
}
