// Package mysqlform takes statements apart that MySQL and MariaDB do not have: INSERT and UPDATE with RETURNING, and ON
// CONFLICT (rule MY8). The connections of gormdb run the pieces, in one transaction.
//
// It imports nothing.
package mysqlform

import (
	"cmp"
	"slices"
	"strings"
)

// Span is a range of the statement's arguments.
type Span struct{ From, To int }

// Text is a statement, and the arguments of the whole that it has, in order.
type Text struct {
	SQL  string
	Args []Span
}

// Form is a statement in pieces.
type Form struct {
	// If Write does not name one row by its key, Find selects the keys, and Lock locks those that still fulfil the condition,
	// by the primary key: an UPDATE locks the entry of an index after the row. Write, Read, and LockKeys end in IN, for the
	// keys; LockKeys precede Lock. A condition that locks has no Lock.
	Find     Text
	LockKeys string
	Lock     Text
	Write    Text
	// Ignores: a row that exists is left unchanged. Rows is the number of those in Write, 0 if they are those of a query.
	Ignores bool
	Rows    int
	// Keyed: only a row with the same key is ignored. Exists finds it if one row is inserted; else Table and Columns, without
	// quotes, show whether another key can conflict.
	Keyed   bool
	Exists  Text
	Table   string
	Columns []string
	// Read returns the written rows; "" means none. If Made, they have the IDs that Write made, and the condition ends in id.
	Read Text
	Made bool
}

// KeyIn precedes the list of keys.
const KeyIn = " IN "

// Parse returns nil for a statement that MySQL has.
func Parse(query string) *Form {
	query = strings.TrimSpace(query)
	switch {
	case strings.HasPrefix(query, "UPDATE ") && strings.Contains(query, "RETURNING "):
		return update(query)
	case strings.HasPrefix(query, "INSERT INTO ") && (strings.Contains(query, "RETURNING ") || strings.Contains(query, "ON CONFLICT ")):
		return insert(query)
	}
	return nil
}

func update(query string) *Form {
	p := piece{text: query}.cut("SET", "WHERE", "RETURNING")
	returning, ok := p["RETURNING"]
	if !ok {
		return nil
	}
	table := strings.TrimSpace(strings.TrimPrefix(p[""].text, "UPDATE"))
	set, where := ordered(p["SET"].list(), ""), p["WHERE"]
	key, value := keyOf(where)
	forced := table
	if key == "id" { // else an index may seem as good, and be locked before the row
		forced += " FORCE INDEX (PRIMARY)"
	}
	if value.text != "" && !queries(where.text+p["SET"].text, strings.Fields(table)[0]) {
		return &Form{
			Write: join("UPDATE "+forced+" SET ", set, " WHERE ", where),
			Read:  join("SELECT ", returning, " FROM "+table+" WHERE "+key+" = ", value),
		}
	}
	lock := join(" AND (", where, ") ORDER BY "+key+" FOR UPDATE")
	if strings.HasSuffix(strings.TrimSpace(where.text), "SKIP LOCKED") {
		lock = Text{}
	}
	return &Form{
		Find:     join("SELECT "+key+" FROM "+table+" WHERE ", where),
		LockKeys: "SELECT " + key + " FROM " + forced + " WHERE " + key + KeyIn,
		Lock:     lock,
		Write:    join("UPDATE "+forced+" SET ", set, " WHERE "+key+KeyIn),
		Read:     join("SELECT ", returning, " FROM "+table+" WHERE "+key+KeyIn),
	}
}

// keyOf returns the key of a condition that begins with it: a quoted column, else id. value is the one that it equals, if
// any.
func keyOf(where piece) (key string, value piece) {
	first := strings.TrimSpace(where.text)
	end := strings.IndexByte(first, ' ')
	if end < 0 {
		return "id", piece{}
	}
	key, rest := first[:end], first[end:]
	if quotes := strings.ContainsAny(key[:1], "\"`"); !quotes && key != "id" {
		return "id", piece{}
	}
	word, isEqual := strings.CutPrefix(rest, " = ")
	if !isEqual {
		return key, piece{}
	}
	if end = strings.IndexByte(word, ' '); end < 0 {
		end = len(word)
	}
	if strings.Trim(word[:end], "?0123456789") != "" {
		return key, piece{}
	}
	return key, piece{word[:end], where.before}
}

// ordered puts assignments that read a column before the one that writes it: MySQL assigns from left to right, and the next
// expression sees the new value. A condition is evaluated in each of them.
func ordered(assignments []piece, condition string) []piece {
	rank := map[string]int{}
	for range assignments {
		for _, writes := range assignments {
			column, _, _ := strings.Cut(writes.text, "=")
			column = name(column)
			if mentions(condition, column) {
				rank[writes.text] = max(rank[writes.text], 1)
			}
			for _, reads := range assignments {
				_, value, _ := strings.Cut(reads.text, "=")
				if reads.text != writes.text && mentions(value, column) {
					rank[writes.text] = max(rank[writes.text], rank[reads.text]+1)
				}
			}
		}
	}
	list := slices.Clone(assignments)
	slices.SortStableFunc(list, func(a, b piece) int { return cmp.Compare(rank[a.text], rank[b.text]) })
	return list
}

func insert(query string) *Form {
	p := piece{text: query}.cut("ON CONFLICT", "RETURNING")
	if len(p) == 1 { // the words are in a text
		return nil
	}
	conflict := p["ON CONFLICT"].cut("DO NOTHING", "DO UPDATE SET", "WHERE")
	into := p[""].cut("VALUES", "SELECT")
	i := insertion{source: into["VALUES"], returning: p["RETURNING"], condition: conflict["WHERE"], updates: conflict["DO UPDATE SET"]}
	if source, ok := into["SELECT"]; ok {
		i.selects, i.source = true, source
	}
	open := strings.IndexByte(into[""].text, '(')
	if open < 0 || i.source.text == "" { // not in this form: the server refuses it
		return nil
	}
	i.columns, _ = into[""].inside()
	head := strings.Fields(into[""].text[len("INSERT INTO"):open])
	i.table, i.alias = head[0], head[len(head)-1]
	i.keys, _ = conflict[""].inside()
	_, ignores := conflict["DO NOTHING"]
	conflicting := i
	if i.updates.text == "" && slices.ContainsFunc(i.columns.list(), func(c piece) bool { return name(c.text) == "id" }) {
		i.keys = piece{text: "id"}
	}
	if i.returning.text != "" && !i.hasKeys() {
		return nil
	}
	f := i.form(ignores)
	if ignores && conflicting.keys.text != "" && conflicting.knowsKeys() {
		conflicting.key(f)
	}
	return f
}

func (i insertion) key(f *Form) {
	f.Keyed, f.Table = true, name(i.table)
	for _, c := range i.columns.list() {
		f.Columns = append(f.Columns, name(c.text))
	}
	if f.Rows == 1 {
		i.returning = piece{text: "1"}
		f.Exists = i.read().and(" LOCK IN SHARE MODE") // another transaction may have committed it
	}
}

// hasKeys reports whether the row can be found again by the values of its keys.
func (i insertion) hasKeys() bool { return i.updates.text == "" || i.knowsKeys() }

func (i insertion) knowsKeys() bool {
	columns := i.columns.list()
	return !slices.ContainsFunc(i.keys.list(), func(key piece) bool {
		return !slices.ContainsFunc(columns, func(c piece) bool { return name(c.text) == name(key.text) })
	})
}

// queries reports whether a text reads a table.
func queries(text, table string) bool {
	return strings.Contains(text, "FROM "+table) || strings.Contains(text, "JOIN "+table)
}

type insertion struct {
	table, alias       string
	columns, keys      piece
	selects            bool
	source             piece // after VALUES or SELECT
	updates, condition piece
	returning          piece
}

func (i insertion) form(ignores bool) *Form {
	verb := " VALUES "
	if i.selects {
		verb = " SELECT "
	}
	f := &Form{Ignores: ignores, Write: join("INSERT INTO "+i.table+" ("+i.columns.text+")"+verb, i.source)}
	if !i.selects {
		f.Rows = i.tuples()
	}
	if i.updates.text != "" {
		f.Write = f.Write.and(" ON DUPLICATE KEY UPDATE ", i.assignments())
	}
	switch {
	case i.returning.text == "":
	case i.updates.text == "" && (i.keys.text != "id" || f.Rows > 1):
		f.Made, f.Read = true, join("SELECT ", i.returning, " FROM "+i.table+" AS "+i.alias+" WHERE id")
	default:
		f.Read = i.read()
	}
	return f
}

func (i insertion) tuples() (n int) {
	for at := range top(i.source.text) {
		if i.source.text[at] == '(' {
			n++
		}
	}
	return n
}

func (i insertion) assignments() (list []piece) {
	condition := i.condition
	condition.text = i.excluded(condition.text)
	for _, a := range ordered(i.updates.list(), condition.text) {
		column, value, _ := strings.Cut(i.excluded(a.text), "=")
		column = strings.TrimSpace(column)
		if condition.text != "" {
			value = " CASE WHEN " + condition.text + " THEN " + value + " ELSE " + i.table + "." + column + " END"
		}
		list = append(list, piece{column + " = " + value, a.before})
	}
	return list
}

// excluded writes VALUES(c) for excluded.c, and the table's name for its alias.
func (i insertion) excluded(text string) string {
	if i.alias != i.table {
		text = replaceWord(text, i.alias+".", i.table+".")
	}
	for {
		before, rest, found := strings.Cut(text, "excluded.")
		if !found {
			return text
		}
		end := 0
		for end < len(rest) && (isLetter(rest[end]) || rest[end] == '"' || rest[end] == '`') {
			end++
		}
		before = strings.TrimRight(before, "\"`") // of "excluded"
		text = before + "VALUES(" + rest[:end] + ")" + rest[end:]
	}
}

func replaceWord(text, old, with string) string {
	var b strings.Builder
	for at := 0; at < len(text); {
		if strings.HasPrefix(text[at:], old) && (at == 0 || !isLetter(text[at-1])) {
			b.WriteString(with)
			at += len(old)
			continue
		}
		b.WriteByte(text[at])
		at++
	}
	return b.String()
}

// read finds the row by the values of the keys.
func (i insertion) read() Text {
	source := i.source
	if !i.selects {
		source, _ = source.inside()
	}
	tail := piece{}
	if i.selects {
		parts := source.cut("FROM")
		tail, source = piece{" FROM" + parts["FROM"].text, parts["FROM"].before}, parts[""]
	}
	values := source.list()
	var keys, expressions []piece
	columns := i.columns.list()
	for _, key := range i.keys.list() {
		at := slices.IndexFunc(columns, func(c piece) bool { return name(c.text) == name(key.text) })
		keys, expressions = append(keys, piece{text: name(key.text)}), append(expressions, values[at])
	}
	text := join("SELECT ", i.returning, " FROM "+i.table+" AS "+i.alias+" WHERE (", keys, ") ")
	if i.selects {
		return text.and("IN (SELECT ", expressions, tail, ")")
	}
	return text.and("= (", expressions, ")")
}

// join writes texts, pieces, and pieces with commas.
func join(parts ...any) Text { return Text{}.and(parts...) }

func (t Text) and(parts ...any) Text {
	var b strings.Builder
	b.WriteString(t.SQL)
	args := slices.Clone(t.Args)
	add := func(p piece) {
		b.WriteString(p.text)
		if span := p.args(); span.From < span.To {
			args = append(args, span)
		}
	}
	for _, part := range parts {
		switch part := part.(type) {
		case string:
			b.WriteString(part)
		case piece:
			add(part)
		case []piece:
			for i, p := range part {
				if i > 0 {
					b.WriteString(", ")
				}
				add(p)
			}
		}
	}
	return Text{b.String(), args}
}
