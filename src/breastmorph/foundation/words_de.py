"""What the explorer's page says in German: names, and the sentences of findings and errors, one text each.

``{side:side}`` is an adjective (linke, rechte), to which a sentence adds its ending; ``{x:word}`` a single word of the
program. What only commands and Python tell has no translation; a test knows which these are.
"""

from __future__ import annotations

from collections.abc import Mapping

from breastmorph.foundation.words import Language, Words
from breastmorph.foundation.words_de_raised import reworded

SIDES = {"left": "linke", "right": "rechte", "both": "beide"}
_SIDED = {
    "base-width-{}": "Basisbreite {}s",
    "half-chest-width-{}": "Halbe Brustkorbbreite {}s",
    "fold-height-{}": "Drosselgrube hinunter zur {}en Falte",
    "nipple-above-fold-{}": "{}e Brustwarze über der Falte",
    "nipple-above-lower-pole-{}": "{}e Brustwarze über dem unteren Pol",
    "surface-{}": "Haut der {}en Brust",
    "footprint-{}": "Grundfläche der {}en Brust",
    "projection-{}": "Projektion {}s",
    "volume-{}": "Volumen der {}en Brust",
    "volume-inner-border-{}": "{}es Volumen, innerer Rand",
    "volume-flat-wall-{}": "{}es Volumen, ebene Wand",
}


MEASURES = {
    "SN-NL": "Drosselgrube bis linke Brustwarze",
    "SN-NR": "Drosselgrube bis rechte Brustwarze",
    "NL-NR": "Brustwarze bis Brustwarze",
    "SN-XI": "Drosselgrube bis Xiphoid",
    "NL-LPL": "Linke Brustwarze bis unterer Pol",
    "NR-LPR": "Rechte Brustwarze bis unterer Pol",
    "NL-IMFL": "Linke Brustwarze bis Falte",
    "NR-IMFR": "Rechte Brustwarze bis Falte",
    "NL-M": "Linke Brustwarze bis Mittellinie",
    "NR-M": "Rechte Brustwarze bis Mittellinie",
    **{
        code.format(side): (said := words.format(stem))[0].upper() + said[1:]
        for code, words in _SIDED.items()
        for side, stem in (("left", "link"), ("right", "recht"))
    },
    "intermammary": "Zwischen den Brüsten",
    "under-bust-seen": "Unterbrustumfang, sichtbarer Teil",
    "volume": "Brustvolumen",
    "mirror deviation": "Abweichung vom Spiegelbild",
    "difference": "Zwischen Brustkorb und Vorhersage",
}
PAIRS_IN_WORDS = {
    "SN-N": "Drosselgrube bis Brustwarze",
    "N-LP": "Brustwarze bis unterer Pol",
    "N-IMF": "Brustwarze bis Falte",
    "N-M": "Brustwarze bis Mittellinie",
    "base-width": "Basisbreite",
    "half-chest-width": "Halbe Brustkorbbreite",
    "projection": "Projektion",
    "volume": "Brustvolumen",
    "volume-inner-border": "Volumen, innerer Rand",
    "volume-flat-wall": "Volumen, ebene Wand",
    "surface": "Haut der Brust",
    "footprint": "Grundfläche der Brust",
    "fold-height": "Drosselgrube hinunter zur Falte",
    "nipple-above-fold": "Brustwarze über der Falte",
    "nipple-above-lower-pole": "Brustwarze über dem unteren Pol",
}
LANDMARKS = {
    "sternal_notch": "Drosselgrube",
    "xiphoid": "Xiphoid",
    "navel": "Nabel",
    "nipple": "{side} Brustwarze",
    "lower_pole": "{side}r unterer Pol",
    "lateral_pole": "{side}r seitlicher Pol",
    "coracoid": "{side}s Coracoid",
    "imf": "{side} Umschlagfalte",
    "medial_border": "innerer Rand der {side}n Brust",
}
WORDS = {  # single words of the program that stand in sentences
    **{"left": "links", "right": "rechts", "straight": "gerade", "tape": "auf der Haut"},
    **{"usual": "üblich", "unusual": "ungewöhnlich", "implausible": "unplausibel"},
    **{"thorax": "Brustkorb", "left breast": "linke Brust", "right breast": "rechte Brust"},
}

_MESHLAB = "Reparieren Sie das Netz (zum Beispiel in MeshLab) oder exportieren Sie den Scan neu"
_DAMAGED = "zu beschädigt zum Reparieren: {what} an {{share:.0%}} der Dreiecke"
_UNIT = "Prüfen Sie, in welcher Einheit die Datei exportiert wurde"
_BELONG = "Prüfen Sie, ob sie zu diesem Scan gehören und in seinen Koordinaten gesetzt wurden"
_AS_BY_HAND = "Setzen Sie die Landmarken von Hand, falls das nicht stimmt"
_LESS = "Wünschen Sie weniger, oder halten Sie weniger fest{usual}"
_RELEASE = "Geben Sie {breasts:| und } frei, oder wünschen Sie weniger"
_ANNOTATE = (
    "Setzen Sie Drosselgrube, Xiphoid und auf mindestens einer Seite Brustwarze, unteren und seitlichen Pol"
)
_TEMPLATE = "Eine Vorlage braucht Drosselgrube, Xiphoid, Brustwarzen, untere und seitliche Pole"
_RENAME = (
    "Ergänzen Sie sie, oder benennen Sie sie wie in docs/landmarks.md; nach einer Mastektomie lassen Sie alle"
)
_SAME_PERSON = "Prüfen Sie, ob beide Scans von derselben Person sind"
_AGAIN = "Versuchen Sie es noch einmal; misslingt es wieder, sehen Sie sich den Scan an"
_PLANNED = "Der Unterschied zwischen der Haut, wie sie ist, und {what}; nicht das Ergebnis einer Operation"
_OF = "als bei {percent} % {of}"
_REPAIRS = {
    "non-finite-vertices": ("{n:,} Punkte mit Koordinaten, die keine Zahlen sind", " entfernt"),
    "unreferenced-vertices": ("{n:,} Punkte ohne Dreiecke", " entfernt"),
    "duplicate-vertices": ("{n:,} doppelte Punkte", " vereint"),
    "degenerate-faces": ("{n:,} Dreiecke ohne Fläche", " entfernt"),
    "duplicate-faces": ("{n:,} doppelte Dreiecke", " entfernt"),
    "non-manifold-edges": ("Dreiecke an {n:,} mehrfach benutzten Kanten", " entfernt"),
    "inconsistent-orientation": ("{n:,} Dreiecke", " gedreht, damit sie zu ihren Nachbarn passen"),
    "pinched-vertices": ("{n:,} Punkte", " geteilt, wo sich nur Ecken berührten"),
}

SENTENCES: Mapping[str, Words] = {
    **{code: Words(found + done) for code, (found, done) in _REPAIRS.items()},
    **{
        f"{code}/refused": Words(_DAMAGED.format(what=found), _MESHLAB)
        for code, (found, _) in _REPAIRS.items()
    },
    "non-finite-vertices/points": Words("{n:,} Punkte, die keine Zahlen sind, entfernt"),
    "inverted-orientation": Words("die Oberfläche war umgestülpt und wurde gewendet"),
    "frame-from-landmarks": Words(
        "die Datei zeigt nicht, wo oben ist; das wird aus den Landmarken geschätzt (auf {degrees:.0f} Grad"
        " genau)"
    ),
    "absent-side": Words("die {side:side} Seite fehlt (keine Brustwarze, keine Pole)"),
    "landmark-order": Words(
        "Punkte ohne Namen in der Reihenfolge {names:landmark} genommen; prüfen Sie, ob das stimmt"
    ),
    "landmarks-not-set": Words(
        "nicht gesetzt: {names:landmark}; eine Registrierung schätzt sie für ihre Maske, in Maßen fehlen"
        " sie{but_found}"
    ),
    "but-found": Words("; nicht verstandene Bezeichnungen: {labels}"),
    "unit/sternum": Words("Einheit nach der Länge des Brustbeins: {unit}"),
    "unit/nipples": Words("Einheit nach dem Abstand von Drosselgrube und Brustwarzen: {unit}"),
    "unit/size": Words("Einheit nach der Größe: {unit}"),
    "scaled": Words(
        "skaliert nach {first:landmark} bis {second:landmark} = {length:g} mm: eine Einheit der Datei ist"
        " {mm:.4g} mm{near}"
    ),
    "scaled/near": Words(", {off:+.0f} % gegenüber {unit}; ist die Datei in {unit}, prüfen Sie den Abstand"),
    "landmarks-found": Words("vom Programm gefunden: {names:landmark}{but_found}"),
    "landmarks-doubtful": Words(
        "gefunden, aber zweifelhaft: {names:landmark}",
        "Sehen Sie sie auf dem Scan an, und setzen Sie sie von Hand, wo sie falsch sind",
    ),
    "landmark-cut-off": Words(
        "{name:landmark} nicht gefunden: der Scan endet, wo sie liegen sollte",
        "Setzen Sie sie von Hand, falls man sie sieht",
    ),
    "landmark-improbable": Words(
        "{name:landmark} liegt {distance:.0f} mm von dort, wo das Programm sie findet ({place})",
        "Sehen Sie sie auf dem Scan an und setzen Sie sie neu; so, wie sie ist, vertraut die Registrierung"
        " ihr weniger",
    ),
    "landmarks-exchanged": Words(
        "{first:landmark} und {second:landmark} scheinen vertauscht",
        "Vertauschen Sie ihre Namen, oder setzen Sie beide neu",
    ),
    "landmarks-no-surface": Words(
        "keine Landmarken zu finden: die Punkte sind zu wenige oder zu weit voneinander, um die Haut zu"
        " zeigen",
        "Geben Sie einige tausend Punkte des Rumpfes, oder eine Oberfläche (Dreiecke)",
    ),
    "landmarks-unknown-unit": Words(
        "keine Landmarken zu finden: der Scan misst {extent:.4g} in der Einheit der Datei; das ist in mm, cm"
        " oder m kein"
        " Rumpf einer Erwachsenen",
        "Nennen Sie die Einheit, oder schneiden Sie den Scan auf den Rumpf zu; ist der Maßstab nicht"
        " bekannt, {scale_by}",
    ),
    "landmarks-wrong-unit": Words(
        "keine Landmarken zu finden: in {unit} gelesen misst der Scan {extent:.4g} mm; das ist kein Rumpf"
        " einer Erwachsenen",
        _UNIT,
    ),
    "not-a-torso": Words(
        "keine Landmarken zu finden: das sieht nicht aus wie die Vorderseite des Rumpfes einer Erwachsenen",
        "Prüfen Sie, ob es die richtige Datei ist und sie die bloße Vorderseite von Hals bis Taille zeigt;"
        " oder setzen Sie"
        " die Landmarken von Hand",
    ),
    "torso-cut-off": Words(
        "keine Landmarken zu finden: der Scan endet vor {names:landmark}",
        "Scannen Sie die bloße Vorderseite von Hals bis Taille, beide Seiten; oder setzen Sie von Hand, was"
        " man sieht",
    ),
    "several-bodies": Words(
        "keine Landmarken zu finden: {share:.0%} der Oberfläche gehören zu etwas anderem als dem Rumpf",
        "Lassen Sie nur eine Person im Scan",
    ),
    "no-breast": Words("keine Landmarken zu finden: auf keiner Seite ist eine Brust zu sehen", _AS_BY_HAND),
    "ambiguous-landmarks": Words(
        "mehrere Landmarkendateien passen zu diesem Scan: {names}", "Behalten Sie eine"
    ),
    "unusable-landmarks/bare-list": Words(
        "die Datei ist eine Liste von Koordinaten ohne Namen", "Schreiben Sie Zeilen aus Name,x,y,z"
    ),
    "unusable-landmarks/found": Words(
        "was die Datei über gefundene Landmarken sagt, ist nicht zu brauchen ({key})",
        "Schreiben Sie die Datei neu, oder entfernen Sie diesen Eintrag",
    ),
    "too-large": Words(
        "zu groß: {faces:,} Dreiecke (höchstens {most:,})",
        "Verkleinern Sie das Netz zuerst (300.000 Dreiecke sind reichlich)",
    ),
    "landmark-off-surface": Words("{name:landmark} liegt {distance:.0f} mm neben der Oberfläche"),
    "landmark-off-surface/one": Words("{name:landmark} {distance:.1f} mm"),
    "landmark-off-surface/refused": Words(
        "Landmarken mehr als {allowed:.0f} mm neben der Oberfläche: {far}", _BELONG
    ),
    "landmark-off-surface/points": Words(
        "die meisten Landmarken liegen neben den Punkten, {name:landmark} um {distance:.0f} mm", _BELONG
    ),
    "lps-ras": Words(
        "Landmarken und Netz haben verschiedene Achsen (LPS/RAS); die Landmarken wurden gedreht"
    ),
    "units-differ": Words(
        "das Netz hat eine andere Einheit als die Landmarken; es wurde mit {scale:g} skaliert"
    ),
    "landmarks-on-several-pieces": Words(
        "der Scan besteht aus {pieces} Stücken, und {names:landmark} liegt auf einem anderen Stück als die"
        " übrigen",
        "Verbinden Sie die Stücke (in MeshLab: merge close vertices), oder exportieren Sie den Scan als eine"
        " Oberfläche",
    ),
    "several-components": Words("{pieces} lose Stücke ({share:.1%} der Fläche) entfernt"),
    "several-components/refused": Words(
        "das Stück mit den Landmarken ist nur {share:.0%} der Oberfläche ({pieces} Stücke)",
        "Entfernen Sie, was nicht die Patientin ist (Tisch, Hintergrund), oder verbinden Sie die Stücke",
    ),
    "too-coarse": Words(
        "zu grob: mittlere Kante {edge:.1f} mm (höchstens {most:g})",
        "Exportieren Sie den Scan feiner (am besten 3,5 mm oder weniger)",
    ),
    "closed-surface": Words("geschlossene Oberfläche (ohne Rand); Scans sind meist offen"),
    "holes": Words("{n} Löcher (das größte {largest:.0f} mm im Umfang)"),
    "holes/one": Words("1 Loch ({largest:.0f} mm im Umfang)"),
    "rough-surface": Words(
        "die Oberfläche ist rau: {rough:.1f} mm neben glatter Haut (Scanner: unter {usual:g})",
        "Suchen Sie nach einer misslungenen Aufnahme oder Einheit, oder exportieren Sie den Scan neu",
    ),
    "covered-breasts": Words(
        "die Oberfläche an den Brustwarzen ist gedehnt ({stretched:.1f}-mal so große Dreiecke wie ringsum):"
        " nach außen gedrückt,"
        " oder Kleidung",
        "Prüfen Sie, ob die Haut bloß war; Volumen einer bedeckten Brust sind zu groß",
    ),
    "layered-surface": Words(
        "eine zweite Oberfläche liegt auf {share:.0%} der Vorderseite näher als {within:.0f} mm: dieselbe"
        " Haut zweimal",
        "Richten Sie die Ansichten des Scans neu aus, oder behalten Sie eine Schicht",
    ),
    "landmarks-off-skin": Words(
        "ein Viertel der Landmarken liegt mehr als {off:.1f} mm neben der Haut: Netz und Landmarken haben"
        " nicht eine Größe",
        "Prüfen Sie, ob beide zusammen exportiert wurden; ein um wenige Prozent skaliertes Netz sieht so aus",
    ),
    "landmarks-of-another": Words(
        "die Haut an den Landmarken der Brustwarzen hat nicht die Form einer Brustwarze",
        "Prüfen Sie, ob es die Landmarken dieses Scans sind und die Brüste bloß",
    ),
    "missing-landmarks": Words(
        "fehlende Landmarken: {names:landmark}{but_found}",
        f"{_RENAME} dieser Seite weg und setzen Xiphoid oder Nabel",
    ),
    "missing-landmarks/complete": Words(
        "fehlende Landmarken: {names:landmark}{but_found}", f"{_RENAME} drei dieser Seite weg"
    ),
    "missing-landmarks/none-known": Words(
        "keine Landmarke der Datei ist bekannt{but_found}", "Benennen Sie sie wie in docs/landmarks.md"
    ),
    "scale-by": Words(
        "skalieren Sie ihn nach einem an der Patientin gemessenen Abstand auf Millimeter, ehe er hier"
        " geöffnet wird"
    ),
    "unknown-unit": Words(
        "{what} misst {length:.4g} in der Einheit der Datei; {least:.0f}-{most:.0f} mm einer Erwachsenen"
        " passen weder zu mm noch"
        " cm noch m",
        "Prüfen Sie diese zwei Landmarken; ist der Maßstab nicht bekannt oder ein anderer (Zoll), {scale_by}",
    ),
    "unknown-unit/distance-unset": Words(
        "der Abstand von {first:landmark} bis {second:landmark} ist angegeben, aber {unset:landmark} ist"
        " nicht gesetzt",
        "Setzen Sie beide Landmarken, oder geben Sie einen Abstand zwischen zwei anderen",
    ),
    "unknown-unit/distance-none": Words(
        "der Abstand von {first:landmark} bis {second:landmark} ist angegeben, aber beide liegen am selben"
        " Ort",
        "Setzen Sie beide Landmarken, oder geben Sie einen Abstand zwischen zwei anderen",
    ),
    "unknown-unit/extent": Words(
        "die Daten messen {extent:.3g} in der Einheit der Datei; {least:.0f}-{most:.0f} mm eines Rumpfes"
        " passen weder zu mm noch"
        " cm noch m",
        "Prüfen Sie, ob es ein Rumpf ist, und die Einheit der Datei; ist der Maßstab nicht bekannt,"
        " {scale_by}",
    ),
    "wrong-unit": Words(
        "in {unit} gelesen misst {what} {length:.4g} mm (bei Erwachsenen {least:.0f}-{most:.0f})",
        "Prüfen Sie diese zwei Landmarken",
    ),
    "implausible-anatomy": Words(
        "kein Rumpf einer Erwachsenen: {problems:|; }",
        "Prüfen Sie die Einheit der Datei, ob jeder Name am richtigen Punkt sitzt, und ob weit entfernte"
        " Punkte dabei sind",
    ),
    "implausible-anatomy/sternum": Words(
        "Drosselgrube bis Xiphoid misst {length:.0f} mm (bei Erwachsenen {least:.0f}-{most:.0f})",
        "Prüfen Sie diese zwei Punkte und die Einheit der Datei",
    ),
    "sides-swapped/picked": Words(
        "{name:landmark} liegt auf der anderen Seite der Patientin",
        "Gemeint sind die Seiten der Patientin: ihre linke ist rechts, wenn sie Sie ansieht. Vertauschen Sie"
        " links und rechts; sind"
        " die Punkte richtig, ist die Datei gespiegelt",
    ),
    "landmark-moved": Words(
        "{name:landmark} liegt {distance:.0f} mm neben der Oberfläche und wurde auf sie gelegt"
    ),
    "pole-above-nipple": Words(
        "{pole:landmark} liegt über {nipple:landmark} und ist doch der tiefste Punkt der Brust; sind beide"
        " vertauscht?"
    ),
    "landmarks-estimated": Words(
        "nicht gesetzt: {names:landmark}; mit der Vorlage geschätzt, nur für Maske und Anfang"
    ),
    "side-mirrored": Words("die {side:side} Brust fehlt: diese Seite folgt nur der Haut des Scans"),
    "breast-without-landmarks": Words(
        "die {side:side} Seite hat keine Landmarken, und doch sieht ihre Oberfläche wie eine Brust aus;"
        " setzen Sie sie, falls die"
        " Brust da ist"
    ),
    "unusual-thorax": Words("ungewöhnlicher Thorax: {gap:.0f} mm von der Vorlage nach dem Ausrichten"),
    "poor-overlap": Words("geringe Überdeckung: {share:.0f} % der Vorlage finden den Scan"),
    "breasts-off": Words("die Brüste liegen im Mittel {distance:.1f} mm vom Scan"),
    "nipple-off": Words("{name:landmark} liegt am Ende {distance:.1f} mm daneben"),
    "folded": Words("gefaltete Dreiecke: {percent:.2f} %"),
    "distorted": Words(
        "starke Verzerrung: Winkel ändern sich im Mittel um {degrees:.0f} Grad; sind das die Landmarken"
        " dieses Scans?"
    ),
    "breast-not-seen": Words("nur {share:.0f} % der {side:side}n Brust sind im Scan; der Rest ist geraten"),
    "unusable-landmarks/off-scan": Words(
        "{name:landmark} liegt {distance:.0f} mm neben der Oberfläche des Scans",
        "Das sieht nach den Landmarken eines anderen Scans aus, oder nach einer anderen Einheit oder Lage",
    ),
    "landmarks-moved": Words(
        "Maße verlaufen hier zwischen Punkten der registrierten Form, die neben den am Scan gesetzten liegen"
        " ({far}); am Scan selbst"
        " gemessen kommt anderes heraus"
    ),
    "landmarks-moved/one": Words("{name:landmark} {distance:.0f} mm"),
    "no-pictures": Words("seine Bilder konnten nicht gezeichnet werden ({why})"),
    "time-limit": Words("{why}", "Sehen Sie sich den Scan an; er ist vielleicht zu groß"),
    "memory-limit": Words("{why}", "Verkleinern Sie den Scan"),
    "crashed": Words("{why}", _AGAIN),
    "worker-lost": Words("{why}", _AGAIN),
    "unexpected": Words("unerwarteter Fehler ({why})", "Bitte melden Sie ihn"),
    "busy": Words("ein anderer Lauf arbeitet in diesem Ordner ({who})", "Warten Sie, bis er endet"),
    "unwritable/folder": Words(
        "in den Ordner kann nicht geschrieben werden ({why})", "Prüfen Sie seine Rechte und den freien Platz"
    ),
    "unwritable/stopped": Words(
        "{what}", "{what:remedy}, dann versuchen Sie es wieder: was fertig ist, bleibt erhalten"
    ),
    "other-template": Words(
        "dieser Ordner enthält Ergebnisse einer anderen Vorlage (von {id})",
        "Räumen Sie die alten Ergebnisse weg: sie gehören zu einem anderen Modell",
    ),
    "not-registered": Words(
        "das ist kein Ordner registrierter Scans",
        "Nennen Sie den Ordner, in den registriert wurde; für Netze von anderswo auch ihre Landmarken",
    ),
    "unreadable/record": Words(
        "dieser Eintrag ist nicht zu lesen ({why})", "Registrieren Sie den Scan neu, oder räumen Sie ihn weg"
    ),
    "unusable-surface/not-manifold": Words(
        "Wege auf der Haut brauchen eine saubere Oberfläche ({why})",
        "Prüfen Sie den Scan, und reparieren Sie das Netz",
    ),
    "unusable-surface/pieces": Words(
        "zwei Punkte liegen auf Stücken der Oberfläche, die nicht verbunden sind",
        "Prüfen Sie den Scan, und behalten Sie das Stück mit den Landmarken",
    ),
    "unusable-surface/empty": Words(
        "die Oberfläche hat keine Dreiecke oder unmögliche Koordinaten", "Prüfen Sie den Scan"
    ),
    "unlike-model": Words(
        "der Scan sieht nicht aus wie das Modell: {reasons:|; }",
        "Prüfen Sie, ob es ein Rumpf von vorn ist, seine Einheit und seine Seiten{hint}",
    ),
    "unlike-model/explained": Words("nur {share:.0%} der Punkte über dem Modell sind erklärt"),
    "unlike-model/covered": Words("er zeigt nur {share:.0%} des Modells"),
    "unlike-model/misfit": Words("die Oberfläche bleibt {misfit:.1f} mm entfernt"),
    "unlike-model/unusual": Words(
        "seine Form wäre {unusual:.1f}-mal so ungewöhnlich wie die der Personen des Modells"
    ),
    "unlike-model/size": Words("er wäre {ratio:.2g}-mal so groß wie das Modell"),
    "unlike-model/hint": Words("; von Hand gesetzte Landmarken geben einen sichereren Anfang"),
    "inverted-orientation/found": Words(
        "die Oberfläche zeigte nach innen und wurde gewendet: die Datei ist umgestülpt oder gespiegelt",
        "Setzen Sie die Landmarken von Hand: sie zeigen, was zutrifft",
    ),
    "inverted-orientation/fitted": Words("die Oberfläche war umgestülpt und wurde gewendet"),
    "wrong-unit/size": Words("nach {by} ist der Scan {ratio:.3g}-mal so groß wie das Modell", _UNIT),
    "missing-landmarks/shared": Words(
        "Modell und Scan haben nur {n} Landmarken gemeinsam; eine Lage braucht drei",
        "Das Modell kennt {known:landmark}; weitere setzen Sie unter Modell. Oder lassen Sie die Landmarken"
        " weg",
    ),
    "pose-without-landmarks": Words(
        "mit Landmarken begonnen, die das Programm fand: eine gespiegelte Datei würde nicht bemerkt"
    ),
    "predicted-by-model": Words(
        "{share:.0%} der Form sind im Scan nicht zu sehen, sondern vom Modell vorhergesagt"
    ),
    "coefficients-far": Words(
        "{n} von {all} Koeffizienten liegen jenseits von 3 Standardabweichungen ({listed}{more})"
    ),
    "misfit": Words("das Modell folgt dieser Oberfläche nur auf {misfit:.1f} mm"),
    "not-explained": Words("{share:.0%} der Punkte über dem Modell sind nicht erklärt"),
    "model/mean-zero": Words(
        "Das Mittel des Modells ist überall null: die Datei enthält vielleicht Verformungen statt Formen"
    ),
    "model/no-torso": Words(
        "Das Mittel des Modells ist {extent:.3g} mm groß, und das ist kein Rumpf: eine andere Einheit?"
        " {tell_the_unit}"
    ),
    "model/no-variance": Words("Das Modell hat keine Streuung: alle seine Formen sind das Mittel"),
    "model/no-body": Words(
        "Die Punkte des Modells streuen um {spread:.3g} mm (Standardabweichung), wie kein Körper: eine"
        " andere Einheit, oder eine"
        " Basis anderer Art? {tell_the_unit}"
    ),
    "model/tell-the-unit": Words("Fünf Landmarken sagen die Einheit (unter Modell setzen)"),
    "model/no-landmarks": Words(
        "Das Modell hat keine Landmarken: nichts sagt, dass es ein Rumpf ist, aufrecht und in mm. Maße,"
        " Änderungen und Vorhersagen"
        " brauchen sie (unter Modell setzen)"
    ),
    "model/mirrored": Words(
        "Die Landmarken des Modells passen zum Spiegelbild eines Körpers: Seiten vertauscht oder Modell"
        " gespiegelt. Verlassen Sie"
        " sich nicht auf Seiten, Bereiche und Volumen. {name_the_sides}"
    ),
    "model/exchanged": Words(
        "Links und rechts der Landmarken des Modells sind vertauscht ({names:landmark}), oder es blickt nach"
        " hinten: verlassen Sie"
        " sich nicht auf die Seiten. {name_the_sides}"
    ),
    "model/name-the-sides": Words(
        "Sind Namen vertauscht, setzen Sie sie unter Modell; gemeint sind die Seiten der Patientin"
    ),
    "model/another-frame": Words(
        "Das Modell ist {how:| und }: es wird in mm gelesen, aufrecht und nach vorn blickend"
    ),
    "unusable-landmarks/model-lacks": Words(
        "dem Modell fehlen {names:landmark}", "Setzen Sie diese Landmarken (unter Modell)"
    ),
    "unusable-landmarks/mask": Words("die Maske braucht {names:landmark| und }", _ANNOTATE),
    "unusable-landmarks/mask-none": Words("die Maske braucht Brustwarze und Pole einer Brust", _ANNOTATE),
    "unusable-landmarks/template-lacks": Words("der Vorlage fehlt {name:landmark}", _TEMPLATE),
    "unusable-landmarks/template-lacks-breast": Words("der Vorlage fehlt eine vollständige Brust", _TEMPLATE),
    "unusable-landmarks/template-off": Words(
        "{name:landmark} der Vorlage liegt {distance:.0f} mm neben ihr",
        "Geben Sie die Landmarken dieser Vorlage, in ihrer Einheit und Lage",
    ),
    "unusable-landmarks/coincide": Words(
        "{nipple:landmark} und {name:landmark} fallen zusammen", "Prüfen Sie Brustwarze und Pole dieser Seite"
    ),
    "unusable-landmarks/off-mesh": Words(
        "{name:landmark} liegt {distance:.0f} mm neben der Oberfläche",
        "Geben Sie die Landmarken dieses Netzes, in seiner Einheit und Lage",
    ),
    "unusable-landmarks/of-model": Words(
        "mit diesem Modell kann nicht registriert werden ({why})", "Setzen Sie sie unter Modell"
    ),
    "standing": Words("{whole} {of}"),
    "standing/because": Words("{first}; im Ganzen {whole} von ihnen"),
    "standing/part": Words("ungewöhnlicher als {percent} %"),
    "standing/all": Words("ungewöhnlicher als alle"),
    "standing/subjects": Words("der {n} Personen des Modells"),
    "standing/population": Words("der Personen des Modells"),
    "standing/mode/more": Words(f"Modus {{which}} ist größer {_OF}"),
    "standing/mode/less": Words(f"Modus {{which}} ist kleiner {_OF}"),
    "standing/size/more": Words(f"die {{which:side}} Brust ist größer {_OF}"),
    "standing/size/less": Words(f"die {{which:side}} Brust ist kleiner {_OF}"),
    "standing/sizes/more": Words(f"die linke Brust übertrifft die rechte um mehr {_OF}"),
    "standing/sizes/less": Words(f"die rechte Brust übertrifft die linke um mehr {_OF}"),
    "standing/heights/more": Words(f"die linke Brustwarze steht gegen die rechte höher {_OF}"),
    "standing/heights/less": Words(f"die rechte Brustwarze steht gegen die linke höher {_OF}"),
    "standing/notch/more": Words(
        f"die linke Brustwarze ist weiter von der Drosselgrube als die rechte, um mehr {_OF}"
    ),
    "standing/notch/less": Words(
        f"die rechte Brustwarze ist weiter von der Drosselgrube als die linke, um mehr {_OF}"
    ),
    "standing/rest/more": Words(f"was die führenden Modi nicht erklären, ist mehr {_OF}"),
    "standing/measure/more": Words(f"{{which:measure}} ist größer {_OF}"),
    "standing/measure/less": Words(f"{{which:measure}} ist kleiner {_OF}"),
    "other-side-absent": Words(
        "die {absent:side} Seite ist die ohne Brust, nicht die {side:side}",
        "Sagen Sie die {absent:side} Seite vorher",
    ),
    "breast-there": Words(
        "die {side:side} Brust ist da",
        "Setzen Sie ihre Landmarken (Scan der Patientin); dann kann sie vorhergesagt werden, als fehlte sie",
    ),
    "breast-there/without-landmarks": Words(
        "die {side:side} Brust ist da: ohne Landmarken, aber ihre Haut zeigt sie",
        "Setzen Sie ihre Landmarken (Scan der Patientin); dann kann sie vorhergesagt werden, als fehlte sie",
    ),
    "not-of-missing": Words(
        "{name} sagt nichts über das, was vorhergesagt wird",
        "Nennen Sie Maße der Seite, die vorhergesagt wird",
    ),
    "no-mirror-image": Words(
        "beide Brüste fehlen, es gibt also kein Spiegelbild", "Planen Sie mit den vorhergesagten Brüsten"
    ),
    "nothing-planned/added": Words(
        "auf der {side:side}n Seite kommt nichts hinzu", "Nehmen Sie, was dort wegkommt"
    ),
    "nothing-planned/removed": Words(
        "auf der {side:side}n Seite kommt nichts weg", "Nehmen Sie, was dort hinzukommt"
    ),
    "not-planned": Words("für die {side:side} Seite wurde nichts geplant", "Wählen Sie {sides}"),
    "planned/predicted": Words(_PLANNED.format(what="dem, was bei den Personen des Modells üblich ist")),
    "planned/mirrored": Words(_PLANNED.format(what="dem Spiegelbild der anderen Brust")),
    "planned/edited": Words(_PLANNED.format(what="der wahrscheinlichsten Form mit den gewünschten Maßen")),
    "planned/synthetic": Words(
        "Mit einem synthetischen Modell gemacht, das keine Menschen kennt: ein Unterschied zweier Formen,"
        " kein Rat und nicht zur"
        " Planung"
    ),
    "stated-far": Words(
        "der angegebene Wert ({name}) liegt {deviations:.1f} Standardabweichungen von dem, was vorhergesagt"
        " wurde"
    ),
    "earlier-without-breast": Words(
        "auch der frühere Scan hat keine {side:side} Brust", "Geben Sie einen Scan von vor der Operation"
    ),
    "needs-landmarks": Words("braucht {names:landmark| und }"),
    "needs-fold": Words("braucht {names:landmark| und }"),
    "needs-fold/grade": Words("braucht {name:landmark} (die Falte)"),
    "no-line": Words("kein Weg auf der Haut verbindet die Enden"),
    "needs-registration": Words("braucht eine Registrierung"),
    "no-midline": Words("keine Haut an der Mittellinie in Höhe der Brustwarze"),
    "side-absent": Words("{side:side} Seite fehlt"),
    "not-reached": Words("das Netz reicht nicht bis {name:landmark}"),
    "not-determinable": Words(
        "{name:measure} ist an dieser Form nicht zu bestimmen", "Wählen Sie ein anderes Maß"
    ),
    "not-determinable/why": Words(
        "{name:measure} ist nicht zu bestimmen: {why}", "Wählen Sie ein anderes Maß"
    ),
    "asked": Words("{parts:| mit }{stay}"),
    "asked/mm": Words("{name:measure} {value:cm} cm"),
    "asked/cc": Words("{name:measure} {value:.1f} cm³"),
    "asked/column": Words("{name} {shift:+g}"),
    "asked/stays": Words(", während {names:measure} bleibt"),
    "asked/stay": Words(", während {names:measure} bleiben"),
    "usual": Words(". Üblich bei dieser Größe: {measures}"),
    "usual/mm": Words("{name:measure} {mean:cm} ± {sd:cm} cm"),
    "usual/cc": Words("{name:measure} {mean:.0f} ± {sd:.0f} cm³"),
    "unattainable/lost": Words("{asked} ist nicht zu erreichen ({why})", _LESS),
    "unattainable/moved": Words(
        "{asked} ist nicht zu erreichen; der Bereich {region:word} müsste sich im Mittel um {moved:.1f} mm"
        " bewegen",
        _LESS,
    ),
    "unattainable/nearest": Words(
        "{asked} ist nicht zu erreichen; die nächste gefundene Form hat {best}", _LESS
    ),
    "unattainable/far": Words(
        "{asked} ist unerreichbar: die Form würde sich um {length:.0f} Standardabweichungen ändern", _LESS
    ),
    "unattainable/folds": Words("{asked} würde die Haut falten ({percent:.1f} % der Dreiecke)", _LESS),
    "unattainable/bent": Words(
        "{asked} ist nicht zu erreichen: am Rand dessen, was festgehalten wird, wäre die Haut {bend:.1f}-mal"
        " so stark gebogen, wie sich"
        " dort je zwei Personen des Modells unterscheiden",
        _LESS,
    ),
    "unattainable/on-held": Words(
        "{asked} ist nicht zu erreichen: {name:measure} liegt ganz auf festgehaltener Haut", _LESS
    ),
    "unattainable/all-held": Words("{asked} ist nicht zu erreichen: die ganze Haut ist festgehalten", _LESS),
    "unattainable/held": Words("{why}", _RELEASE),
    "unattainable/breast": Words("die {side:side} Brust"),
    "unattainable/nothing": Words("nichts kann festgehalten werden", "Halten Sie weniger fest"),
    "beyond-model": Words(
        "{asked} ist nicht zu erreichen: {name:measure} ist unerreichbar, {deviations:.0f}"
        " Standardabweichungen vom Mittel; über"
        " solche Formen weiß das Modell nichts",
        _LESS,
    ),
    "beyond-model/held": Words("{why}", _RELEASE),
    "unusual-value/above": Words(
        "{name:measure}: der gewünschte Wert liegt {deviations:.1f} Standardabweichungen über dem Mittel des"
        " Modells bei dieser Größe"
    ),
    "unusual-value/below": Words(
        "{name:measure}: der gewünschte Wert liegt {deviations:.1f} Standardabweichungen unter dem Mittel"
        " des Modells bei dieser Größe"
    ),
    "unusual-shape": Words("die geänderte Form ist {level:word}: {standing}"),
    "edit-folded": Words(
        "{percent:.2f} % der Dreiecke sind umgeklappt; sehen Sie sich die Form an, ehe Sie sie benutzen"
    ),
    "edit-bent": Words(
        "am Rand dessen, was festgehalten wird ({regions:word}), ist die Haut {bend:.1f}-mal so stark"
        " gebogen, wie sich dort je zwei"
        " Personen des Modells unterscheiden; sehen Sie sich den Rand an"
    ),
    "unknown-measure": Words("{name!r} ist hier nicht bekannt", "{known}"),
    "known-measures": Words("Maße sind {names:measure}{absent}{columns}"),
    "known-measures/none": Words(
        "Es gibt keine Maße: das Modell hat zu wenige Landmarken (unter Modell setzen){absent}{columns}"
    ),
    "known-measures/absent": Words(" (die {side:side} Brust fehlt)"),
    "known-measures/columns": Words("; Spalten der Tabelle sind {names}"),
    "asked-twice": Words("{name:measure} ist zweimal gewünscht", "Behalten Sie einen Wert"),
    "impossible-value/mm": Words("{name:measure} wäre {value:cm} cm", "Jetzt sind es {now:cm} cm"),
    "impossible-value/cc": Words("{name:measure} wäre {value:.1f} cm³", "Jetzt sind es {now:.1f} cm³"),
    "cannot-be-held": Words(
        "{name!r} kann nicht festgehalten werden", "Bereiche sind {regions:word}. {known}"
    ),
    "changed-and-held": Words(
        "{name:measure} soll sowohl geändert als auch festgehalten werden", "Wählen Sie eines von beiden"
    ),
    "region-not-held": Words(
        "der Bereich {region:word} kann nicht festgehalten werden: {why}", "{why:remedy}"
    ),
    "same-in-all": Words(
        "{name:measure} ist in allen Formen dieses Modells gleich", "Wählen Sie ein anderes Maß"
    ),
    "part-of-torso": Words("dieses Modell ist keines ganzer Rümpfe", "Nehmen Sie ein Modell ganzer Rümpfe"),
    "fits-worse/thorax": Words(
        "ihr Thorax passt {ratio:.1f}-mal schlechter als der schlechteste der Personen des Modells"
    ),
    "fits-worse/known": Words(
        "was von ihr bekannt ist, passt {ratio:.1f}-mal schlechter als das Schlechteste der Personen des"
        " Modells"
    ),
    "unusable-surface/fits-worse": Words(
        "dieser Scan sieht nicht aus wie das Modell: {why}",
        "Prüfen Sie seine Landmarken und seine Registrierung, oder nehmen Sie ein Modell, das solche Rümpfe"
        " kennt",
    ),
    "other-size": Words(
        "der Brustkorb ist um {percent:+.0f} % größer als beim ersten Termin: eine andere Einheit, oder eine"
        " andere Person",
        "Prüfen Sie die Einheit beider Dateien, und ob sie von derselben Person sind",
    ),
    "odd-size": Words(
        "der Brustkorb von {visit} ist um {percent:+.1f} % größer als beim ersten Termin: vielleicht ein"
        " anderer Maßstab oder eine"
        " andere Person",
        _SAME_PERSON,
    ),
    "odd-person": Words(
        "der Brustkorb von {visit} liegt {misfit:.1f} mm neben dem des ersten Termins: vielleicht eine"
        " andere Person",
        _SAME_PERSON,
    ),
    "odd-sides": Words(
        "{visit} sieht aus wie das Spiegelbild des ersten Termins: Seiten vertauscht, oder eine gespiegelte"
        " Datei",
        "Prüfen Sie links und rechts beider Scans",
    ),
    "side-not-compared": Words(
        "die {side:side} Brust fehlt bei mindestens einem Termin; ihr Volumen und die Symmetrie werden nicht"
        " verglichen"
    ),
    "unreadable/large-session": Words(
        "die Sitzungsdatei ist ausgepackt größer als {most:,.0f} MB",
        "Starten Sie den Explorer so, dass er größere Dateien nimmt",
    ),
    "patient-not-computed": Words("die Patientin konnte nicht neu berechnet werden: {why}. {why:remedy}"),
    "predicted-by-earlier": Words(
        "die Brust wurde nach einem früheren Scan vorhergesagt, den eine Sitzungsdatei nicht enthält: sagen"
        " Sie sie neu vorher"
    ),
    "session-differs": Words(
        "die Form in der Sitzungsdatei ist nicht, was Scan und Landmarken ergeben (sie weichen um bis zu"
        " {off:.1f} mm ab); gezeigt wird"
        " die berechnete: die Datei wurde verändert, oder von einer anderen Version gemacht (gespeichert mit"
        " {saved}, geöffnet mit"
        " {opened})"
    ),
}

GERMAN = Language(
    *(SENTENCES, MEASURES, PAIRS_IN_WORDS, LANDMARKS, SIDES, WORDS, str.maketrans(",.", ".,")), True, reworded
)
