"""The data source: the `costs` extract with everything that makes it ready to use, in one `.tdsx` file.

A `.tdsx` is a ZIP file with a description (`.tds`, XML) and the extract that it describes. The elements and their order
are those of Tableau's published schema of its documents. The connection is straight to the packaged extract: there is
no database behind it that a refresh could look for, a new file replaces the old one.
"""

from __future__ import annotations

import hashlib
import shutil
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from xml.etree import ElementTree as xml

from orchestration.publish.tableau.costs import TABLE
from orchestration.publish.tableau.fields import CALCULATIONS, DRILL_PATHS, FIELDS, FOLDERS, Calculation, Field
from orchestration.publish.tableau.hyper import SCHEMA

NAME = "apportion_costs"
CAPTION = "Apportion costs"
PACKAGED = f"Data/Extracts/{TABLE}.hyper"
CONNECTION = "hyper.apportion"
VERSION = "18.1"
"""Of the format, as Tableau 2018.1 and everything since writes it."""
FEATURES = ("ObjectModelEncapsulateLegacy", "ObjectModelTableType", "SchemaViewerObjectModel")
"""What the reader must know of: tables as objects, and folders that hold dimensions beside measures."""
EPOCH = (1980, 1, 1, 0, 0, 0)
"""The oldest date that a ZIP file can say. A fixed one, so that the same content gives the same file."""

TYPES = {
    "VARCHAR": ("string", 129, "nominal"),
    "DATE": ("date", 133, "ordinal"),
    "TIMESTAMP": ("datetime", 135, "ordinal"),
    "BOOLEAN": ("boolean", 11, "nominal"),
    "BIGINT": ("integer", 20, "quantitative"),
    "DECIMAL": ("real", 131, "quantitative"),
}
"""Of each type in DuckDB: what Tableau calls it, its number in OLE DB, and what kind of field it makes."""

Columns = Mapping[str, str]
"""The columns of the extract with their types, in order."""
Descriptions = Mapping[tuple[str, str], str]
"""What the marts say of each table's columns."""


def tds(columns: Columns, descriptions: Descriptions) -> bytes:
    fields = [field for field in FIELDS if field.name in columns]
    source = xml.Element(
        "datasource",
        {"caption": CAPTION, "formatted-name": NAME, "inline": "true", "source-platform": "linux", "version": VERSION},
    )
    manifest = xml.SubElement(source, "document-format-change-manifest")
    for feature in FEATURES:
        xml.SubElement(manifest, feature)
    _connection(source, columns, fields)
    xml.SubElement(source, "aliases", {"enabled": "yes"})
    for field in fields:
        _column(source, field, columns[field.name], descriptions)
    for calculation in CALCULATIONS:
        _calculation(source, calculation)
    _drill_paths(source)
    _folders(source, fields)
    xml.SubElement(
        source, "layout", {"dim-ordering": "alphabetic", "measure-ordering": "alphabetic", "show-structure": "true"}
    )
    objects = xml.SubElement(xml.SubElement(source, "object-graph"), "objects")
    whole = xml.SubElement(objects, "object", {"caption": TABLE, "id": OBJECT})
    _relation(xml.SubElement(whole, "properties", {"context": ""}))
    xml.indent(source)
    return xml.tostring(source, encoding="utf-8", xml_declaration=True) + b"\n"


OBJECT = f"{TABLE}_{hashlib.sha256(TABLE.encode()).hexdigest()[:32].upper()}"
"""The table's name among the objects of the data source: any that stays the same, or workbooks lose their fields."""


def package(target: Path, description: bytes, extract: Path) -> None:
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        with archive.open(_entry(f"{NAME}.tds"), "w") as entry:
            entry.write(description)
        with archive.open(_entry(PACKAGED), "w", force_zip64=True) as entry, extract.open("rb") as file:
            shutil.copyfileobj(file, entry, 1 << 20)


def _entry(name: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name, EPOCH)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = 0o644 << 16
    return entry


def _connection(source: xml.Element, columns: Columns, fields: Sequence[Field]) -> None:
    federated = xml.SubElement(source, "connection", {"class": "federated"})
    named = xml.SubElement(
        xml.SubElement(federated, "named-connections"), "named-connection", {"caption": TABLE, "name": CONNECTION}
    )
    xml.SubElement(
        named,
        "connection",
        {
            "access_mode": "readonly",
            "authentication": "auth-none",
            "class": "hyper",
            "dbname": PACKAGED,
            "default-settings": "yes",
            "schema": SCHEMA,
            "sslmode": "",
            "tablename": TABLE,
            "username": "tableau_internal_user",
        },
    )
    _relation(federated)
    names = xml.SubElement(federated, "cols")
    for column in sorted(columns):
        xml.SubElement(names, "map", {"key": f"[{column}]", "value": f"[{TABLE}].[{column}]"})
    records = xml.SubElement(federated, "metadata-records")
    by_name = {field.name: field for field in fields}
    for ordinal, (column, column_type) in enumerate(columns.items()):
        _record(records, ordinal, column_type, by_name[column])


def _relation(parent: xml.Element) -> None:
    xml.SubElement(
        parent,
        "relation",
        {"connection": CONNECTION, "name": TABLE, "table": f"[{SCHEMA}].[{TABLE}]", "type": "table"},
    )


def _record(records: xml.Element, ordinal: int, column_type: str, field: Field) -> None:
    base, _, size = column_type.partition("(")
    datatype, number, _ = TYPES[base]
    implied = {"date": "Year", "datetime": "Year"}.get(datatype, "Count")
    record = xml.SubElement(records, "metadata-record", {"class": "column"})
    parts: dict[str, object] = {
        "remote-name": field.name,
        "remote-type": number,
        "local-name": f"[{field.name}]",
        "parent-name": f"[{TABLE}]",
        "remote-alias": field.name,
        "ordinal": ordinal,
        "local-type": datatype,
        "aggregation": field.aggregation or implied,
    }
    if size:
        parts["precision"], parts["scale"] = size.rstrip(")").split(",")
    parts |= {"contains-null": "true", "object-id": f"[{OBJECT}]"}
    for name, value in parts.items():
        xml.SubElement(record, name).text = str(value)


def _column(source: xml.Element, field: Field, column_type: str, descriptions: Descriptions) -> None:
    datatype, _, kind = TYPES[column_type.partition("(")[0]]
    attributes = {"caption": field.caption, "datatype": datatype, "name": f"[{field.name}]"}
    if field.aggregation:
        attributes |= {"aggregation": field.aggregation, "role": "measure", "type": "quantitative"}
    else:
        attributes |= {"role": "dimension", "type": "ordinal" if kind == "quantitative" else kind}
    if field.format:
        attributes["default-format"] = field.format
    if field.hidden:
        attributes["hidden"] = "true"
    column = xml.SubElement(source, "column", attributes)
    _describe(column, field.description or (descriptions.get(field.described_by, "") if field.described_by else ""))


def _calculation(source: xml.Element, calculation: Calculation) -> None:
    column = xml.SubElement(
        source,
        "column",
        {
            "caption": calculation.caption,
            "datatype": "real",
            "name": f"[{calculation.name}]",
            "role": "measure",
            "type": "quantitative",
            "default-format": calculation.format,
        },
    )
    xml.SubElement(column, "calculation", {"class": "tableau", "formula": calculation.formula})
    _describe(column, calculation.description)


def _describe(column: xml.Element, text: str) -> None:
    if text:
        described = xml.SubElement(xml.SubElement(column, "desc"), "formatted-text")
        xml.SubElement(described, "run").text = " ".join(text.split())


def _drill_paths(source: xml.Element) -> None:
    paths = xml.SubElement(source, "drill-paths")
    for name, levels in DRILL_PATHS.items():
        path = xml.SubElement(paths, "drill-path", {"name": name})
        for level in levels:
            xml.SubElement(path, "field").text = f"[{level}]"


def _folders(source: xml.Element, fields: Sequence[Field]) -> None:
    folders = xml.SubElement(source, "folders-common")
    for name in FOLDERS:
        folder = xml.SubElement(folders, "folder", {"name": name})
        for item in (*fields, *CALCULATIONS):
            if item.folder == name:
                xml.SubElement(folder, "folder-item", {"name": f"[{item.name}]", "type": "field"})
