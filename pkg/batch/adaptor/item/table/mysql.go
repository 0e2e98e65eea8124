package table

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/surfin-batch/surfin/internal/dberr"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

type mysql struct {
	db     tx.Database
	config *config
}

// OnMySQL implements trait.OnMySQL.
func (c *config) OnMySQL() error {
	if c.Where != "" {
		return &registry.ConfigError{Key: "where", Err: errors.New("the writer table does not have this on MySQL, where no index is partial")}
	}
	return nil
}

func (e *mysql) oneByOne(create string) string { return create }

const mysqlScale = 30 // the largest

func (e *mysql) typeName(kind row.Kind) string {
	if kind.IsList() {
		return "json"
	}
	switch kind {
	case row.Int:
		return "bigint"
	case row.Float:
		return "double"
	case row.Bool:
		return "boolean"
	case row.DateKind:
		return "date"
	case row.Timestamp:
		return "datetime(6)"
	case row.DecimalKind:
		return "decimal(65, 20)"
	case row.JSONKind:
		return "json"
	case row.UUIDKind:
		return "char(36)"
	case row.BytesKind:
		return "longblob"
	case row.String, row.Null:
	}
	return "mediumtext"
}

// mysqlKey is a type that an index can have; texts are told apart by their bytes.
func mysqlKey(typ string) string {
	switch typ {
	case "mediumtext", "json":
		return "varchar(255) character set utf8mb4 collate utf8mb4_bin"
	case "longblob":
		return "varbinary(255)"
	}
	return typ
}

func (e *mysql) describe(ctx context.Context, conn tx.Conn, table string) (r relation, err error) {
	schema, name := mysqlNames(table)
	rows, err := conn.QueryContext(ctx, `select c.column_name, c.data_type, c.column_type, coalesce(c.generation_expression, '') <> '',
		coalesce(c.character_maximum_length, 0), coalesce(c.character_octet_length, 0), coalesce(c.numeric_scale, 0), coalesce(c.datetime_precision, 0),
		coalesce(t.engine, ''), t.table_type, @@max_allowed_packet
		from information_schema.columns c join information_schema.tables t on t.table_schema = c.table_schema and t.table_name = c.table_name
		where c.table_schema = coalesce(nullif(?1, ''), database()) and c.table_name = ?2 order by c.ordinal_position`, schema, name)
	if err != nil {
		return r, err
	}
	var storage, kind string
	for rows.Next() {
		var c mysqlColumn
		if err := rows.Scan(&c.name, &c.dataType, &c.typ, &c.generated, &c.length, &c.bytes, &c.scale, &c.fraction, &storage, &kind, &r.packet); err != nil {
			return r, errors.Join(err, rows.Close())
		}
		r.columns = append(r.columns, c.column(e.config))
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil || r.absent() {
		return r, err
	}
	if kind != "BASE TABLE" || !strings.EqualFold(storage, "InnoDB") {
		why := fmt.Sprintf("it is a %s of the engine %s, which has no transactions: only tables of InnoDB can be written", strings.ToLower(kind), storage)
		r.refuses = map[writeMode]string{e.config.mode(): why}
		return r, nil
	}
	return r, e.findKey(ctx, conn, &r, schema, name)
}

// findKey refuses an upsert without a unique index on its key, which would insert (rule MY5).
func (e *mysql) findKey(ctx context.Context, conn tx.Conn, r *relation, schema, name string) error {
	if e.config.mode() != modeUpsert {
		return nil
	}
	rows, err := conn.QueryContext(ctx, `select index_name, column_name, sub_part is not null from information_schema.statistics
		where table_schema = coalesce(nullif(?1, ''), database()) and table_name = ?2 and non_unique = 0 order by index_name, seq_in_index`, schema, name)
	if err != nil {
		return err
	}
	indexes := map[string][]string{}
	for rows.Next() {
		var index, column string
		var isPart bool
		if err := rows.Scan(&index, &column, &isPart); err != nil {
			return errors.Join(err, rows.Close())
		}
		if isPart {
			column += "(...)"
		}
		indexes[index] = append(indexes[index], strings.ToLower(column))
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return err
	}
	key := strings.Split(strings.ToLower(strings.Join(e.config.Key, "\n")), "\n")
	slices.Sort(key)
	found := false
	for _, columns := range indexes {
		slices.Sort(columns)
		found = found || slices.Equal(columns, key)
	}
	if !found {
		r.refuses = map[writeMode]string{modeUpsert: fmt.Sprintf("it has no unique index on the key (%s), and nothing else", strings.Join(e.config.Key, ", "))}
	}
	r.onlyKey = found && len(indexes) == 1
	return nil
}

type mysqlColumn struct {
	name, dataType, typ            string
	generated                      bool
	length, bytes, scale, fraction int64
}

func (m *mysqlColumn) column(cfg *config) column {
	c := column{name: m.name, typ: m.typ}
	if m.generated {
		c.refused = "the database generates column " + m.name
	}
	unsigned := strings.Contains(m.typ, "unsigned")
	switch m.dataType {
	case "tinyint", "smallint", "mediumint", "int", "bigint":
		c.kind, c.exact = row.Int, true
		if m.typ == "tinyint(1)" {
			c.kind = row.Bool
		}
		if unsigned && m.dataType == "bigint" {
			zero := 0
			c.kind, c.scale = row.DecimalKind, &zero
		}
	case "year":
		c.kind, c.exact = row.Int, true
		c.limit = ofText("MySQL takes 1 to 99 for years of this century or the last", func(text string) bool { return text == "0" || len(text) == 4 })
	case "bit":
		c.kind, c.exact = row.Int, true
	case "float":
		c.kind, c.limit = row.Float, ofText("a float has 24 bits", isReal)
	case "double":
		c.kind, c.exact = row.Float, true
	case "decimal":
		scale := int(m.scale)
		c.kind, c.scale, c.compared = row.DecimalKind, &scale, fmt.Sprintf("cast(? as decimal(65, %d))", scale)
	case "date":
		c.kind, c.exact = row.DateKind, true
	case "datetime", "timestamp":
		c.kind, c.zone = row.Timestamp, cfg.zone
		if m.fraction < 6 {
			c.limit = ofFraction(int(m.fraction))
		}
	case "time":
		c.kind, c.limit = row.String, onlyTexts("expected HH:mm:ss", timeWithin(m.fraction))
	case "char", "varchar", "tinytext", "text", "mediumtext", "longtext":
		c.kind, c.limit = row.String, m.textLimit()
	case "enum", "set":
		c.kind, c.limit = row.String, onlyTexts("the column has other values", m.members())
	case "json":
		c.kind = row.JSONKind
	case "binary":
		c.kind = row.BytesKind
		c.limit = &limit{why: "MySQL would pad it with zeros", keep: m.keepsBytes}
	case "varbinary", "tinyblob", "blob", "mediumblob", "longblob":
		c.kind = row.BytesKind
	case "uuid":
		c.kind = row.UUIDKind
	case "inet4", "inet6":
		c.kind = row.String
	default:
		c.refused = fmt.Sprintf("column %s is of type %s, which no field has", m.name, m.typ)
	}
	return c
}

func (m *mysqlColumn) keepsBytes(v row.Value) (row.Value, change) {
	size := len(v.Bytes())
	if v.Kind() == row.String {
		size = len(v.Str())
	}
	if int64(size) != m.length {
		return v, unfit
	}
	return v, unchanged
}

// MySQL cuts these off without an error: blanks beyond the length, and at the end of a char.
func (m *mysqlColumn) textLimit() *limit {
	switch m.dataType {
	case "char":
		return ofText(fmt.Sprintf("the column has %d characters, none of them a blank at the end", m.length), func(text string) bool {
			return int64(utf8.RuneCountInString(text)) <= m.length && !strings.HasSuffix(text, " ")
		})
	case "varchar":
		return ofText(fmt.Sprintf("the column has %d characters", m.length), func(text string) bool { return int64(utf8.RuneCountInString(text)) <= m.length })
	}
	return ofText(fmt.Sprintf("the column has %d bytes", m.bytes), func(text string) bool { return int64(len(text)) <= m.bytes })
}

func (m *mysqlColumn) members() func(text string) bool {
	var all []string
	for _, found := range regexp.MustCompile(`'((?:[^']|'')*)'`).FindAllStringSubmatch(m.typ, -1) {
		all = append(all, strings.ReplaceAll(found[1], "''", "'"))
	}
	return func(text string) bool {
		if m.dataType == "enum" {
			return slices.Contains(all, text)
		}
		last := -1
		for _, part := range strings.Split(text, ",") {
			at := slices.Index(all, part)
			if at <= last && text != "" {
				return false
			}
			last = at
		}
		return true
	}
}

// MySQL rounds.
func ofFraction(digits int) *limit {
	unit := 1
	for range 6 - digits {
		unit *= 10
	}
	return &limit{from: row.Timestamp, why: fmt.Sprintf("the column has %d digits of a second", digits), keep: func(v row.Value) (row.Value, change) {
		if v.Kind() == row.Timestamp && v.Time().UnixMicro()%int64(unit) != 0 {
			return v, unfit
		}
		return v, unchanged
	}}
}

func timeWithin(digits int64) func(text string) bool {
	form := regexp.MustCompile(fmt.Sprintf(`^-?[0-9]{1,3}:[0-5][0-9](:[0-5][0-9](\.[0-9]{0,%d})?)?$`, digits))
	return form.MatchString
}

func isReal(text string) bool {
	x, err := row.ParseFloat(text)
	return err == nil && row.Real(float32(x)) == x
}

func (e *mysql) newBatch() batch { return &mysqlBatch{} }

// rowOf runs a statement for one row, and reports whether it found one.
func rowOf(ctx context.Context, conn tx.Conn, statement string, args []any) (bool, error) {
	result, err := conn.ExecContext(ctx, statement, args...)
	if err != nil {
		return false, err
	}
	n, err := result.RowsAffected()
	return n > 0, err
}

// upsertOne never changes the row of another unique index: its conflict is an error of the item (rule MY5). The row
// may come between the UPDATE and the INSERT.
func (p *plan) upsertOne(ctx context.Context, conn tx.Conn, args []any) error {
	for again := false; ; again = true {
		found, err := rowOf(ctx, conn, p.mysqlUpdate(), p.setFirst(args))
		if found || err != nil {
			return err
		}
		_, err = conn.ExecContext(ctx, p.mysqlInsert(1), args...)
		if again || !dberr.IsUniqueViolation(err) {
			return err
		}
	}
}
