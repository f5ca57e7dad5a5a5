"""German for the errors whose English stands where they are raised: each by its template, with ``{}`` for values.

They read alike at every door and are few at each place, so English has no catalogue of them. What is put into a
sentence may be one of these texts too. A test finds all that a page can meet in the sources and looks for them here.
"""

from __future__ import annotations

import re
from functools import lru_cache

RAISED = {
    # --- files ---
    "the file is cut off: {}": "die Datei ist abgeschnitten: {}",
    "Copy or export the file again": "Kopieren oder exportieren Sie die Datei noch einmal",
    "the file is damaged: {}": "die Datei ist beschädigt: {}",
    "there is no such file": "diese Datei gibt es nicht",
    "Check the name and the folder": "Prüfen Sie Name und Ordner",
    "this link leads to a file that is not there": "diese Verknüpfung führt zu einer Datei, die nicht da ist",
    "Bring the file back": "Bringen Sie die Datei zurück",
    "{} announces {} bytes, fewer are there": "{} kündigt {} Bytes an, weniger sind da",
    "this is a folder, not a file": "das ist ein Ordner, keine Datei",
    "Name one file in it": "Nennen Sie eine Datei darin",
    "Give the name of a file": "Nennen Sie eine Datei",
    "this is not a regular file": "das ist keine gewöhnliche Datei",
    "Copy its content to a file first": "Kopieren Sie ihren Inhalt zuerst in eine Datei",
    "the file is empty": "die Datei ist leer",
    "the file has {} MB, more than the {} MB allowed": "die Datei hat {} MB, mehr als die erlaubten {} MB",
    "Export a smaller file": "Exportieren Sie eine kleinere Datei",
    "the file cannot be opened ({})": "die Datei lässt sich nicht öffnen ({})",
    "Check its permissions": "Prüfen Sie ihre Zugriffsrechte",
    "the {} file does not fit into memory": "die {}-Datei passt nicht in den Arbeitsspeicher",
    "the {} file is nested too deeply": "die {}-Datei ist zu tief verschachtelt",
    "the {} file is damaged ({})": "die {}-Datei ist beschädigt ({})",
    "{}: {} is not a number": "{}: {} ist keine Zahl",
    "{}: {} is not a valid whole number": "{}: {} ist keine gültige ganze Zahl",
    "the folder cannot be made ({})": "der Ordner lässt sich nicht anlegen ({})",
    "Choose another folder": "Wählen Sie einen anderen Ordner",
    "the file cannot be written ({})": "die Datei lässt sich nicht schreiben ({})",
    "Check the folder's permissions and free space": "Prüfen Sie Zugriffsrechte und freien Platz des Ordners",
    "it announces arrays of {} MB, more than the file can hold": (
        "sie kündigt Felder von {} MB an, mehr als die Datei fassen kann"
    ),
    "{} is compressed as NumPy does not compress": "{} ist so gepackt, wie NumPy nicht packt",
    "the XML is nested too deeply": "das XML ist zu tief verschachtelt",
    "the XML has a document type declaration (DOCTYPE), which is not accepted": (
        "das XML hat eine Dokumenttyp-Angabe (DOCTYPE), die nicht angenommen wird"
    ),
    "Remove it, or export the file again": "Entfernen Sie sie, oder exportieren Sie die Datei noch einmal",
    "the XML breaks off or is not well formed ({})": "das XML bricht ab oder ist nicht wohlgeformt ({})",
    "the file cannot be read ({})": "die Datei lässt sich nicht lesen ({})",
    "the folder for this file does not exist": "den Ordner für diese Datei gibt es nicht",
    "Create it first": "Legen Sie ihn zuerst an",
    # --- meshes ---
    "the format of this file is not known": "das Format dieser Datei ist nicht bekannt",
    "Meshes are read from PLY, OBJ, STL, OFF, VTK/VTP (PolyData) and glTF (.glb, .gltf) files": (
        "Gelesen werden PLY, OBJ, STL, OFF, VTK/VTP (PolyData) und glTF (.glb, .gltf)"
    ),
    "the file has {} points but no faces (a point cloud)": (
        "die Datei hat {} Punkte, aber keine Flächen (eine Punktwolke)"
    ),
    "Export a surface with triangles": "Exportieren Sie eine Oberfläche aus Dreiecken",
    "meshes are not written to {}": "Oberflächen werden nicht als {} geschrieben",
    "names without extension": "Namen ohne Endung",
    "Choose one of {}": "Wählen Sie eines von {}",
    "this is {}, not a mesh file that can be read": "das ist {}, keine lesbare Datei einer Oberfläche",
    "a gzip archive": "ein gzip-Archiv",
    "a zip archive (or 3MF)": "ein zip-Archiv (oder 3MF)",
    "an HDF5 file": "eine HDF5-Datei",
    "an FBX file": "eine FBX-Datei",
    "a picture": "ein Bild",
    "a PDF": "ein PDF",
    "an NRRD volume": "ein NRRD-Volumen",
    "a JSON text, but not glTF's": "ein JSON-Text, aber nicht der von glTF",
    "an XML text, but not VTK's": "ein XML-Text, aber nicht der von VTK",
    "the content does not begin as that of a {} file does": "der Inhalt beginnt nicht wie der einer {}-Datei",
    "The file is damaged, cut off or misnamed. {}": "Die Datei ist beschädigt, abgeschnitten oder falsch benannt. {}",
    "the cells do not fit the list of their corners": "die Zellen passen nicht zur Liste ihrer Ecken",
    "its polygons are too intricate to be cut into triangles": (
        "ihre Vielecke sind zu verwickelt, um in Dreiecke geteilt zu werden"
    ),
    "Export it with triangles": "Exportieren Sie sie mit Dreiecken",
    "Export it with plain triangles": "Exportieren Sie sie mit einfachen Dreiecken",
    "a face names vertex {}, but there are only {}": "eine Fläche nennt Punkt {}, es gibt aber nur {}",
    "a face names vertex {}, but there are only {} vertices": "eine Fläche nennt Punkt {}, es gibt aber nur {} Punkte",
    "a face names vertex {} of {}": "eine Fläche nennt Punkt {} von {}",
    "The file is damaged; export it again": "Die Datei ist beschädigt; exportieren Sie sie noch einmal",
    "vertices have shape {}, expected (n, 3)": "die Punkte haben die Form {}, erwartet ist (n, 3)",
    "faces have shape {}, expected (m, 3)": "die Flächen haben die Form {}, erwartet ist (m, 3)",
    "texture coordinates have shape {}, expected ({}, 3, 2)": (
        "Texturkoordinaten haben die Form {}, erwartet ist ({}, 3, 2)"
    ),
    "colors have shape {}, expected ({}, 4)": "die Farben haben die Form {}, erwartet ist ({}, 4)",
    "vertices, faces or colours are no table of numbers": "Punkte, Flächen oder Farben sind keine Tabelle von Zahlen",
    "Give arrays of shape (n, 3) and (m, 3)": "Geben Sie Felder der Form (n, 3) und (m, 3)",
    "the data lie in another file, {}, which is not in the scan's folder": (
        "die Daten liegen in einer anderen Datei, {}, die nicht im Ordner des Scans ist"
    ),
    "Export one self-contained .glb file": "Exportieren Sie eine einzige .glb-Datei, die alles enthält",
    "the header": "der Kopf",
    "the binary data": "die binären Daten",
    "a text array": "ein Textfeld",
    "the appended data": "die angehängten Daten",
    "this is glTF version {}; version 2 is read": "das ist glTF in Version {}; gelesen wird Version 2",
    "Export the file as glTF 2.0": "Exportieren Sie die Datei als glTF 2.0",
    "the header announces {} bytes, {} are there": "der Kopf kündigt {} Bytes an, {} sind da",
    "the description (JSON) is missing": "die Beschreibung (JSON) fehlt",
    "the description (JSON) is not an object": "die Beschreibung (JSON) ist kein Objekt",
    "a rotation has no direction": "eine Drehung hat keine Richtung",
    "GLB cannot hold vertices that are not finite in 32 bits": (
        "GLB fasst keine Punkte, die in 32 Bit nicht endlich sind"
    ),
    "Repair the mesh first": "Reparieren Sie zuerst die Oberfläche",
    "the scene shows more than {} vertices and corners: it repeats its meshes": (
        "die Szene zeigt mehr als {} Punkte und Ecken: sie wiederholt ihre Oberflächen"
    ),
    "the scene shows more than {} parts": "die Szene zeigt mehr als {} Teile",
    "Export the surface once": "Exportieren Sie die Oberfläche einmal",
    "a part is longer than the file": "ein Teil ist länger als die Datei",
    "the compression {} is not read": "die Packart {} wird nicht gelesen",
    "Export the file without compression": "Exportieren Sie die Datei ungepackt",
    "Save the file with zlib or none": "Speichern Sie die Datei mit zlib oder ungepackt",
    "number {} of '{}' is named, there are {}": "Nummer {} von '{}' wird genannt, es gibt {}",
    "number {} of 'buffers' has no data": "Nummer {} von 'buffers' hat keine Daten",
    "the places of a repeated mesh do not fit together": "die Orte einer wiederholten Oberfläche passen nicht zusammen",
    "the file uses sparse arrays, which are not read": (
        "die Datei verwendet dünn besetzte Felder, die nicht gelesen werden"
    ),
    "Export it without them": "Exportieren Sie sie ohne diese",
    "an array has {} columns instead of {}": "ein Feld hat {} statt {} Spalten",
    "an array has impossible sizes": "ein Feld hat unmögliche Maße",
    "an array announces {} rows, fewer are there": "ein Feld kündigt {} Zeilen an, weniger sind da",
    "data within the description are not in base64": "Daten in der Beschreibung sind nicht in base64",
    "the nodes are nested without end": "die Knoten sind ohne Ende verschachtelt",
    "the file stores triangle strips or fans": "die Datei speichert Dreiecke als Streifen oder Fächer",
    "the corners are not a multiple of three": "die Zahl der Ecken ist kein Vielfaches von drei",
    "the file's arrays are too large": "die Felder der Datei sind zu groß",
    "{} has {} rows for {} vertices": "{} hat {} Zeilen für {} Punkte",
    "a vertex has fewer than three coordinates": "ein Punkt hat weniger als drei Koordinaten",
    "a face has {} corners": "eine Fläche hat {} Ecken",
    "a face names {}, which is no vertex": "eine Fläche nennt {}, das ist kein Punkt",
    "a binary STL header has {} bytes, the file has {}": "der Kopf eines binären STL hat {} Bytes, die Datei hat {}",
    "the STL header announces {} triangles, {} are there": "der STL-Kopf kündigt {} Dreiecke an, {} sind da",
    "the STL text has no closing 'endsolid'": "dem STL-Text fehlt das schließende 'endsolid'",
    "an STL facet has not exactly three corners of three numbers": (
        "ein STL-Dreieck hat nicht genau drei Ecken aus drei Zahlen"
    ),
    "the OFF file does not begin with 'OFF'": "die OFF-Datei beginnt nicht mit 'OFF'",
    "this variant of OFF (binary or four-dimensional) is not read": (
        "diese Art von OFF (binär oder vierdimensional) wird nicht gelesen"
    ),
    "Save it as plain OFF": "Speichern Sie sie als einfaches OFF",
    "the line with the numbers of vertices and faces is missing": "die Zeile mit der Zahl der Punkte und Flächen fehlt",
    "the number of vertices or faces is negative": "die Zahl der Punkte oder Flächen ist negativ",
    "{} vertices and faces are announced, {} are there": "{} Punkte und Flächen sind angekündigt, {} sind da",
    "the vertex lines do not all have the numbers that the first line announces": (
        "nicht alle Punktzeilen haben die Zahlen, die die erste Zeile ankündigt"
    ),
    "a face has fewer corners than it announces": "eine Fläche hat weniger Ecken, als sie ankündigt",
    "a face names texture coordinate {} of {}": "eine Fläche nennt Texturkoordinate {} von {}",
    "a texture coordinate has no number": "eine Texturkoordinate hat keine Zahl",
    "the header announces {} of '{}', fewer are there": "der Kopf kündigt {} von '{}' an, weniger sind da",
    "there is no element 'vertex' with x, y and z": "es gibt kein Element 'vertex' mit x, y und z",
    "the PLY file stores triangle strips": "die PLY-Datei speichert Dreiecksstreifen",
    "the PLY header has no 'end_header'": "dem PLY-Kopf fehlt 'end_header'",
    "an element of the PLY header has more than {} properties": (
        "ein Element des PLY-Kopfes hat mehr als {} Eigenschaften"
    ),
    "the PLY header names no known 'format'": "der PLY-Kopf nennt kein bekanntes 'format'",
    "the PLY header names the unknown type {}": "der PLY-Kopf nennt den unbekannten Typ {}",
    "the PLY header has the line {}": "der PLY-Kopf hat die Zeile {}",
    "a face has not two texture coordinates per corner": "eine Fläche hat nicht zwei Texturkoordinaten je Ecke",
    "{} has the unknown type {}": "{} hat den unbekannten Typ {}",
    "{} has the unknown format {}": "{} hat das unbekannte Format {}",
    "{} announces {} numbers, fewer are there": "{} kündigt {} Zahlen an, weniger sind da",
    "{} announces {} numbers, {} are there": "{} kündigt {} Zahlen an, {} sind da",
    "{} announces {} numbers": "{} kündigt {} Zahlen an",
    "{} announces {} rows of {} numbers": "{} kündigt {} Zeilen aus {} Zahlen an",
    "{} announces {} blocks": "{} kündigt {} Blöcke an",
    "{} announces {} bytes where {} are expected": "{} kündigt {} Bytes an, erwartet sind {}",
    "{} announces {} cells that do not fit its {} numbers": (
        "{} kündigt {} Zellen an, die nicht zu seinen {} Zahlen passen"
    ),
    "{} has {} of {} numbers": "{} hat {} von {} Zahlen",
    "{} ends within a number": "{} endet mitten in einer Zahl",
    "{} lies behind the end of the file": "{} liegt hinter dem Ende der Datei",
    "{} is {}": "{} ist {}",
    "the VTK file holds fields only, no surface": "die VTK-Datei enthält nur Felder, keine Oberfläche",
    "Save the surface as PolyData": "Speichern Sie die Oberfläche als PolyData",
    "the line 'DATASET ...' is missing": "die Zeile 'DATASET ...' fehlt",
    "the VTK file holds {}, not a surface (POLYDATA)": "die VTK-Datei enthält {}, keine Oberfläche (POLYDATA)",
    "the VTK file holds {}, not a surface (PolyData)": "die VTK-Datei enthält {}, keine Oberfläche (PolyData)",
    "an unknown dataset": "einen unbekannten Datensatz",
    "Extract the surface and save it as PolyData": "Holen Sie die Oberfläche heraus und speichern Sie sie als PolyData",
    "Extract the surface and save it as PolyData (.vtp)": (
        "Holen Sie die Oberfläche heraus und speichern Sie sie als PolyData (.vtp)"
    ),
    "POINTS are missing": "POINTS fehlen",
    "the Points are missing": "die Points fehlen",
    "a FIELD has the array {}": "ein FIELD hat das Feld {}",
    "its header_type {} is not known": "ihr header_type {} ist nicht bekannt",
    "the VTK file has no Piece": "die VTK-Datei hat kein Piece",
    "the VTK file has the line {}": "die VTK-Datei hat die Zeile {}",
    "connectivity or offsets of {} are missing": "connectivity oder offsets von {} fehlen",
    "CONNECTIVITY of {} is missing": "CONNECTIVITY von {} fehlt",
    "neither ASCII nor BINARY is declared": "weder ASCII noch BINARY ist angegeben",
    "a compressed block of {} has the wrong size": "ein gepackter Block von {} hat die falsche Größe",
    # --- landmarks ---
    "the JSON text holds no landmarks": "der JSON-Text enthält keine Landmarken",
    'Expected are {"name": [x, y, z], ...}, 3D Slicer markups or a Scalismo landmark list': (
        'Erwartet sind {"name": [x, y, z], ...}, Markups von 3D Slicer oder eine Landmarkenliste von Scalismo'
    ),
    "{} has not three coordinates": "{} hat nicht drei Koordinaten",
    "Give x, y and z": "Geben Sie x, y und z an",
    "Give x, y, z for each": "Geben Sie für jede x, y und z an",
    "'markups' is not a list of markups": "'markups' ist keine Liste von Markups",
    "'controlPoints' is not a list": "'controlPoints' ist keine Liste",
    "Save the file again with 3D Slicer": "Speichern Sie die Datei noch einmal mit 3D Slicer",
    "the markups use different coordinate systems or units": (
        "die Markups verwenden verschiedene Koordinatensysteme oder Einheiten"
    ),
    "Save them with one coordinate system and unit": "Speichern Sie sie mit einem Koordinatensystem und einer Einheit",
    "control point {} is not an object": "Kontrollpunkt {} ist kein Objekt",
    "the XML text holds {}, not MeshLab's PickedPoints": "der XML-Text enthält {}, nicht die PickedPoints von MeshLab",
    "Save the points as .pp": "Speichern Sie die Punkte als .pp",
    "the columns x, y and z are missing": "die Spalten x, y und z fehlen",
    "the file holds no landmarks": "die Datei enthält keine Landmarken",
    "Expected are lines of name,x,y,z": "Erwartet sind Zeilen der Form Name,x,y,z",
    "Write lines of name,x,y,z": "Schreiben Sie Zeilen der Form Name,x,y,z",
    "the file holds {}, not landmarks": "die Datei enthält {}, keine Landmarken",
    "Give a .ply with the landmarks alone, as its vertices": (
        "Geben Sie eine .ply-Datei, deren Punkte allein die Landmarken sind"
    ),
    "the file is not text": "die Datei ist kein Text",
    "the file is not UTF-8 text": "die Datei ist kein UTF-8-Text",
    "Save the landmarks as UTF-8 text": "Speichern Sie die Landmarken als UTF-8-Text",
    "the file holds only blanks": "die Datei enthält nur Leerzeichen",
    "Export the landmarks again": "Exportieren Sie die Landmarken noch einmal",
    "Export the file again": "Exportieren Sie die Datei noch einmal",
    "the order names {}, which is no landmark": "die Reihenfolge nennt {}, das ist keine Landmarke",
    "Known are {}": "Bekannt sind {}",
    "the order names {} landmarks, the file has {} points": (
        "die Reihenfolge nennt {} Landmarken, die Datei hat {} Punkte"
    ),
    "Give one name per point": "Geben Sie jedem Punkt einen Namen",
    "landmarks are not written as {}": "Landmarken werden nicht als {} geschrieben",
    "the axes {} are not known": "die Achsen {} sind nicht bekannt",
    "the coordinate system {} is not known": "das Koordinatensystem {} ist nicht bekannt",
    "Use LPS or RAS": "Verwenden Sie LPS oder RAS",
    "landmark {} is not finite": "Landmarke {} ist nicht endlich",
    "a landmark is not finite": "eine Landmarke ist nicht endlich",
    "Remove it or place it again": "Entfernen Sie sie, oder setzen Sie sie noch einmal",
    "Remove the landmark or place it again": "Entfernen Sie die Landmarke, oder setzen Sie sie noch einmal",
    "{} has a coordinate that is not finite ({})": "{} hat eine Koordinate, die nicht endlich ist ({})",
    "{} has the coordinate {}, which is not a number": "{} hat die Koordinate {}, das ist keine Zahl",
    "Correct it in the file": "Berichtigen Sie das in der Datei",
    "the JSON text breaks off or is not well formed (line {}: {})": (
        "der JSON-Text bricht ab oder ist nicht wohlgeformt (Zeile {}: {})"
    ),
    "{} is given twice": "{} ist zweimal angegeben",
    "landmark {} is given twice": "Landmarke {} ist zweimal angegeben",
    "landmark {} is given twice ({})": "Landmarke {} ist zweimal angegeben ({})",
    "Keep one entry per name": "Behalten Sie einen Eintrag je Namen",
    "Keep one point per name": "Behalten Sie einen Punkt je Namen",
    "entry {} of the list has no 'id' or no 'coordinates'": (
        "Eintrag {} der Liste hat kein 'id' oder keine 'coordinates'"
    ),
    "the table begins with {}, which are not the columns name, x, y, z": (
        "die Tabelle beginnt mit {}, das sind nicht die Spalten name, x, y, z"
    ),
    "line {} of the table ({}) has {} fields": "Zeile {} der Tabelle ({}) hat {} Felder",
    "{} landmark names but {} points": "{} Namen von Landmarken, aber {} Punkte",
    "landmarks are no points of three numbers": "die Landmarken sind keine Punkte aus drei Zahlen",
    "nipples and sternum lie on one line, so left and right cannot be told": (
        "Brustwarzen und Brustbein liegen auf einer Linie, so sind links und rechts nicht zu unterscheiden"
    ),
    "Check the positions of the nipples, sternal notch and xiphoid": (
        "Prüfen Sie die Lage von Brustwarzen, Drosselgrube und Xiphoid"
    ),
    "left and right contradict front and back: sides swapped or file mirrored": (
        "links und rechts widersprechen vorn und hinten: Seiten vertauscht oder Datei gespiegelt"
    ),
    "Check the names of the left and right landmarks (sides are the patient's), and of the upper and lower ones; "
    "if all are right, the file is mirrored: export it again without mirroring": (
        "Prüfen Sie die Namen der linken und rechten Landmarken (gemeint sind die Seiten der Patientin) und der oberen "
        "und unteren; sind alle richtig, ist die Datei gespiegelt: exportieren Sie sie noch einmal ohne Spiegelung"
    ),
    "the nipples lie nearer to the sternal notch than to the xiphoid": (
        "die Brustwarzen liegen näher an der Drosselgrube als am Xiphoid"
    ),
    "Sternal notch and xiphoid seem to be exchanged: the notch is the upper end of the breastbone": (
        "Drosselgrube und Xiphoid scheinen vertauscht: die Grube ist das obere Ende des Brustbeins"
    ),
    "two landmarks are at the same place": "zwei Landmarken liegen am selben Ort",
    "Check the positions of the sternal notch and xiphoid": "Prüfen Sie die Lage von Drosselgrube und Xiphoid",
    "the landmarks lie on one line": "die Landmarken liegen auf einer Linie",
    "Give one that lies beside it": "Geben Sie eine an, die daneben liegt",
    "the landmarks fit the model's mirror image better: sides swapped or file mirrored": (
        "die Landmarken passen besser zum Spiegelbild des Modells: Seiten vertauscht oder Datei gespiegelt"
    ),
    "Check the names of the left and right landmarks (sides are the patient's); if all are right, export the file "
    "again without mirroring": (
        "Prüfen Sie die Namen der linken und rechten Landmarken (gemeint sind die Seiten der Patientin); sind alle "
        "richtig, exportieren Sie die Datei noch einmal ohne Spiegelung"
    ),
    # --- scans and folders ---
    "there is no scan in this folder itself; {}": "in diesem Ordner selbst ist kein Scan; {}",
    "Name a subfolder, for example {}": "Nennen Sie einen Unterordner, zum Beispiel {}",
    "there is no scan in this folder": "in diesem Ordner ist kein Scan",
    "Supported formats: {}": "Gelesen werden: {}",
    "there is no such file or folder": "diese Datei oder diesen Ordner gibt es nicht",
    "there is no such folder": "diesen Ordner gibt es nicht",
    "Check the path": "Prüfen Sie den Pfad",
    "two scans have the same name: {} and {}": "zwei Scans haben denselben Namen: {} und {}",
    "Rename or remove one of them": "Benennen Sie einen um, oder entfernen Sie ihn",
    "one landmark file cannot serve {} scans": "eine Landmarkendatei kann nicht für {} Scans gelten",
    "Give a folder with one landmark file per scan, named after the scan": (
        "Geben Sie einen Ordner mit einer Landmarkendatei je Scan, benannt wie der Scan"
    ),
    "the folder has {} scans": "der Ordner hat {} Scans",
    "Name the file of one scan": "Nennen Sie die Datei eines Scans",
    "this mesh has no adult's size in mm, cm or m": (
        "diese Oberfläche hat weder in mm noch in cm oder m die Größe Erwachsener"
    ),
    "Check its unit": "Prüfen Sie ihre Einheit",
    "no face of the file has finite corners": "keine Fläche der Datei hat endliche Ecken",
    "Export the scan again": "Exportieren Sie den Scan noch einmal",
    "no landmark in this file is known": "keine Landmarke in dieser Datei ist bekannt",
    "See docs/landmarks.md for the names": "Die Namen stehen in docs/landmarks.md",
    "the landmarks do not lie on this scan ({} is {} mm off)": (
        "die Landmarken liegen nicht auf diesem Scan ({} ist {} mm entfernt)"
    ),
    "Check that they belong to this scan, in its coordinates and unit": (
        "Prüfen Sie, ob sie zu diesem Scan gehören, in seinen Koordinaten und seiner Einheit"
    ),
    "it cannot be read or computed ({})": "es lässt sich nicht lesen oder berechnen ({})",
    "The file may be damaged: export it again": "Die Datei ist vielleicht beschädigt: exportieren Sie sie noch einmal",
    "Try a smaller file": "Versuchen Sie es mit einer kleineren Datei",
    "Try a smaller file, for example one with fewer triangles": (
        "Versuchen Sie es mit einer kleineren Datei, zum Beispiel mit weniger Dreiecken"
    ),
    # --- registration ---
    "the template does not find the thorax ({})": "die Vorlage findet den Brustkorb nicht ({})",
    "This does not look like a torso seen from the front, or the landmarks are not its own": (
        "Das sieht nicht aus wie ein Rumpf von vorn, oder die Landmarken gehören nicht dazu"
    ),
    "only {} % of the template finds the scan's surface": "nur {} % der Vorlage finden die Oberfläche des Scans",
    "The scan shows too little of the chest, or the landmarks are not its own": (
        "Der Scan zeigt zu wenig vom Brustkorb, oder die Landmarken gehören nicht dazu"
    ),
    "sides swapped or file mirrored: left, up and forward do not fit together": (
        "Seiten vertauscht oder Datei gespiegelt: links, oben und vorn passen nicht zusammen"
    ),
    "Left and right are the patient's; rename the landmarks, or turn the surface outside out": (
        "Links und rechts sind die der Patientin; benennen Sie die Landmarken um, oder drehen Sie "
        "die Oberfläche nach außen"
    ),
    "the landmarks do not say where the breasts are": "die Landmarken sagen nicht, wo die Brüste sind",
    "Give at least the sternal notch, and nipple and lower pole of one side": (
        "Geben Sie mindestens die Drosselgrube sowie Brustwarze und unteren Pol einer Seite an"
    ),
    "no surface where the xiphoid should be": "keine Oberfläche, wo das Xiphoid sein müsste",
    "Give the landmark xiphoid, and an upright mesh in mm": (
        "Geben Sie das Xiphoid an, und eine aufrechte Oberfläche in mm"
    ),
    "a breast region is empty": "der Bereich einer Brust ist leer",
    "Check that the landmarks belong to this mesh, upright and in mm": (
        "Prüfen Sie, ob die Landmarken zu dieser Oberfläche gehören, aufrecht und in mm"
    ),
    "the mesh shows too little bare chest around the breasts to span a chest wall": (
        "die Oberfläche zeigt um die Brüste zu wenig Brustkorb, um eine Brustwand zu spannen"
    ),
    "Use a template that reaches the abdomen and the sides of the chest": (
        "Verwenden Sie eine Vorlage, die bis zum Bauch und zu den Seiten des Brustkorbs reicht"
    ),
    # --- prediction and editing ---
    "the missing region leaves no thorax to lay the scan on": (
        "der fehlende Bereich lässt keinen Brustkorb, auf den der Scan gelegt werden kann"
    ),
    "Paint a smaller region: one breast with its close surroundings": (
        "Malen Sie einen kleineren Bereich: eine Brust mit ihrer nahen Umgebung"
    ),
    "nothing is left on the {} side to predict from": "auf der Seite {} bleibt nichts, woraus vorhergesagt werden kann",
    "Paint the missing breast on one side only": "Malen Sie die fehlende Brust nur auf einer Seite",
    "{} painted vertices for a model of {}": "{} gemalte Punkte für ein Modell aus {}",
    "Paint the region on the model's own topology": "Malen Sie den Bereich auf den Dreiecken des Modells",
    "the painted region is empty": "der gemalte Bereich ist leer",
    "Paint the vertices that are missing": "Malen Sie, was fehlt",
    "the model's mean cannot be mirrored: it lies {} mm from its mirror image": (
        "der Mittelwert des Modells lässt sich nicht spiegeln: er liegt {} mm von seinem Spiegelbild"
    ),
    "Predicting a breast needs a model of whole torsos, upright and in mm": (
        "Eine Vorhersage braucht ein Modell ganzer Rümpfe, aufrecht und in mm"
    ),
    "there is no side {}": "eine Seite {} gibt es nicht",
    "Choose left, right or both": "Wählen Sie links, rechts oder beide",
    "the {} side has no breast either ({} cc), so there is nothing to predict from": (
        "auch auf der Seite {} ist keine Brust ({} ml), so gibt es nichts, woraus vorhergesagt werden kann"
    ),
    "A prediction needs one breast": "Eine Vorhersage braucht eine Brust",
    "left": "links",
    "right": "rechts",
    "this model does not know {}": "dieses Modell kennt {} nicht",
    "Choose of {}": "Wählen Sie aus {}",
    "a shape of {} vertices for a model of {}": "eine Form aus {} Punkten für ein Modell aus {}",
    "Register the scan with the template that the model was built with": (
        "Registrieren Sie den Scan mit der Vorlage, mit der das Modell gebaut wurde"
    ),
    "the scan is {} times as large as the model's mean": "der Scan ist {}-mal so groß wie der Mittelwert des Modells",
    "Give it in mm": "Geben Sie ihn in mm an",
    "the model has no components: it knows one shape only": "das Modell hat keine Komponenten: es kennt nur eine Form",
    "Use another model": "Verwenden Sie ein anderes Modell",
    "{} is the same in all subjects of this model": "{} ist bei allen Personen dieses Modells gleich",
    "Choose another measure": "Wählen Sie ein anderes Maß",
    "the template does not have the model's triangles": "die Vorlage hat nicht die Dreiecke des Modells",
    "Give the template that the model was built with": "Geben Sie die Vorlage, mit der das Modell gebaut wurde",
    # --- models of a folder ---
    "all shapes are the same": "alle Formen sind gleich",
    "A model needs shapes that differ": "Ein Modell braucht Formen, die sich unterscheiden",
    "{} subjects are too few for a model": "{} Personen sind zu wenige für ein Modell",
    "{} of {} shapes are not of the others' size: {} the median": (
        "{} von {} Formen haben nicht die Größe der anderen: {} im Vergleich zum Median"
    ),
    "Their files are in another unit or damaged: register them again, or leave them out": (
        "Ihre Dateien sind in anderer Einheit oder beschädigt: registrieren Sie sie noch einmal, "
        "oder lassen Sie sie weg"
    ),
    "the shape has coordinates that are not finite, or no extent": (
        "die Form hat Koordinaten, die nicht endlich sind, oder keine Ausdehnung"
    ),
    "Leave this subject out or register it again": "Lassen Sie diese Person weg, oder registrieren Sie sie noch einmal",
    "the folder holds no registered scan": "der Ordner enthält keinen registrierten Scan",
    "the scans were registered with different templates": "die Scans wurden mit verschiedenen Vorlagen registriert",
    "Register them all again with one template": "Registrieren Sie alle noch einmal mit einer Vorlage",
    # --- requests of the page, with values ---
    "there is no such {}": "das gibt es hier nicht ({})",
    "scan": "Scan",
    "folder": "Ordner",
    "session": "Sitzung",
    "file": "Datei",
    "texture": "Textur",
    "{} is still being prepared": "{} wird noch vorbereitet",
    "the model": "das Modell",
    "the editor": "die Bearbeitung",
    "{} is no date": "{} ist kein Datum",
    "{} other tabs are at work, and there is no place for one more": (
        "{} andere Tabs arbeiten gerade, für einen weiteren ist kein Platz"
    ),
    "{} scans are open": "{} Scans sind offen",
    "Change one to {} measures": "Ändern Sie ein bis {} Maße",
    "the file is larger than the {} MB allowed": "die Datei ist größer als die erlaubten {} MB",
    "two files are called {}": "zwei Dateien heißen {}",
    "landmarks are missing: {}": "Landmarken fehlen: {}",
    # --- session files ---
    "the session file holds too many files, or one twice": (
        "die Sitzungsdatei enthält zu viele Dateien, oder eine doppelt"
    ),
    "Save the session again from the explorer": "Speichern Sie die Sitzung noch einmal",
    "Save the session again": "Speichern Sie die Sitzung noch einmal",
    "the session file lacks {}": "der Sitzungsdatei fehlt {}",
    "the session file lacks its scan": "der Sitzungsdatei fehlt ihr Scan",
    "the session file is damaged: a file in it is longer than announced": (
        "die Sitzungsdatei ist beschädigt: eine Datei darin ist länger als angekündigt"
    ),
    "the notes of the session file are too large": "die Notizen der Sitzungsdatei sind zu groß",
    "this is no session file": "das ist keine Sitzungsdatei",
    "Give a file that the explorer saved": "Geben Sie eine Datei, die diese Seite gespeichert hat",
    "the session was saved with another model ({})": "die Sitzung wurde mit einem anderen Modell gespeichert ({})",
    "Start the explorer with this model: {}": "Starten Sie mit diesem Modell: {}",
    "the session file has a patient's shape without the scan it was computed from": (
        "die Sitzungsdatei enthält die Form einer Patientin ohne den Scan, aus dem sie berechnet wurde"
    ),
    "Open the scan itself, and register it again": "Öffnen Sie den Scan selbst, und registrieren Sie ihn noch einmal",
    "the session file is damaged: the patient": "die Sitzungsdatei ist beschädigt: die Patientin",
    "an array in the session file is too large": "ein Feld der Sitzungsdatei ist zu groß",
    "the session file is damaged: an array": "die Sitzungsdatei ist beschädigt: ein Feld",
    "an array in the session file does not fit the model": "ein Feld der Sitzungsdatei passt nicht zum Modell",
    "the session file is damaged: landmarks of the model": "die Sitzungsdatei ist beschädigt: Landmarken des Modells",
    "this is no session file, or it is damaged ({})": "das ist keine Sitzungsdatei, oder sie ist beschädigt ({})",
    "the session file is damaged ({})": "die Sitzungsdatei ist beschädigt ({})",
    "the session file holds a file that does not belong there": (
        "die Sitzungsdatei enthält eine Datei, die nicht dorthin gehört"
    ),
    "the session file is compressed in another way than ours": "die Sitzungsdatei ist anders gepackt als unsere",
    "the session file announces more than it can hold": "die Sitzungsdatei kündigt mehr an, als sie fassen kann",
    "the session file is damaged: {}": "die Sitzungsdatei ist beschädigt: {}",
}
_NUMBER = re.compile(r"-?[\d,]*\d(?:\.\d+)?")
_SIGNS = str.maketrans(",.", ".,")


@lru_cache(maxsize=1)
def _patterns() -> list[tuple[re.Pattern[str], str]]:
    """Templates with holes, those that say most first."""
    holed = sorted(
        ((one, said) for one, said in RAISED.items() if "{}" in one), key=lambda pair: -len(pair[0])
    )
    return [
        (re.compile("(.+?)".join(map(re.escape, one.split("{}"))), re.DOTALL), said) for one, said in holed
    ]


def reworded(text: str) -> str:
    """A text of these in German, and so are its parts; what is not known stays."""
    if text in RAISED:
        return RAISED[text]
    if _NUMBER.fullmatch(text):
        return text.translate(_SIGNS)
    for pattern, said in _patterns():
        found = pattern.fullmatch(text)
        if found is not None:
            return said.format(*map(reworded, found.groups()))
    return text
