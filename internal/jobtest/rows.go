package jobtest

import (
	"bufio"
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/internal/jobfile/testfile"
	"github.com/surfin-batch/surfin/internal/sqlscript"
	"github.com/surfin-batch/surfin/internal/sqlvalue"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

func fileText(name string, c testfile.Content) (string, error) {
	if !c.IsRows {
		return c.Text, nil
	}
	switch suffix := name[strings.LastIndexByte(name, '.')+1:]; suffix {
	case "csv":
		return csvText(columnsOf(c.Rows), c.Rows)
	case "json", "jsonl":
		var docs []string
		for _, r := range c.Rows.List {
			docs = append(docs, document(r))
		}
		if suffix == "json" {
			return "[" + strings.Join(docs, ",\n") + "]\n", nil
		}
		return strings.Join(docs, "\n") + "\n", nil
	}
	return "", fmt.Errorf("files: rows can be written as csv, json or jsonl, by the suffix of the name, not %s: write its text", name)
}

func csvText(columns []string, rows testfile.Rows) (string, error) {
	var b strings.Builder
	w := csv.NewWriter(&b)
	records := [][]string{columns}
	for _, r := range rows.List {
		records = append(records, valuesOf(columns, r, ""))
	}
	err := w.WriteAll(records)
	return b.String(), err
}

func document(cells []testfile.Cell) string {
	parts := make([]string, len(cells))
	for i, c := range cells {
		value := c.Text
		switch {
		case c.Null:
			value = "null"
		case !c.Quoted && (value == "true" || value == "false" || json.Valid([]byte(value)) && isNumber(value)):
		default:
			value = quoted(value)
		}
		parts[i] = quoted(c.Name) + ":" + value
	}
	return "{" + strings.Join(parts, ",") + "}"
}

func quoted(text string) string {
	out, err := json.Marshal(text)
	if err != nil { // a string has a JSON form
		return `""`
	}
	return string(out)
}

func isNumber(text string) bool {
	_, err := strconv.ParseFloat(text, 64)
	return err == nil
}

func columnsOf(rows testfile.Rows) (names []string) {
	for _, r := range rows.List {
		for _, c := range r {
			if !slices.Contains(names, c.Name) {
				names = append(names, c.Name)
			}
		}
	}
	return names
}

func valuesOf(columns []string, cells []testfile.Cell, null string) []string {
	values := make([]string, len(columns))
	for i, name := range columns {
		values[i] = null
		for _, c := range cells {
			if c.Name == name && !c.Null {
				values[i] = c.Text
			}
		}
	}
	return values
}

func (s *stand) fill(ctx context.Context) error {
	if err := fillDatabase(ctx, s.dbs[tx.Default], s.zone, s.test.SQL, s.test.Tables); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(s.test.In)) {
		if err := fillDatabase(ctx, s.dbs[name], s.zone, s.test.In[name].SQL, s.test.In[name].Tables); err != nil {
			return fmt.Errorf("in: %s: %w", name, err)
		}
	}
	return nil
}

func fillDatabase(ctx context.Context, db tx.Database, zone *time.Location, sql string, tables map[string]testfile.Rows) error {
	for _, statement := range sqlscript.Split(sql, db.Dialect()) {
		if _, err := db.Conn().ExecContext(ctx, statement.Text); err != nil {
			return fmt.Errorf("sql: %s: %w", statement.Text, err)
		}
	}
	for _, table := range slices.Sorted(maps.Keys(tables)) {
		clocks, err := clocksOf(ctx, db, table, zone)
		if err != nil {
			return fmt.Errorf("tables: %s: %w", table, err)
		}
		for _, cells := range tables[table].List {
			var names, marks []string
			var args []any
			for i, c := range cells {
				mark := "?"
				if db.Dialect() == tx.Postgres {
					mark = fmt.Sprintf("$%d", i+1)
				}
				names, marks = append(names, db.Dialect().Quote(c.Name)), append(marks, mark)
				if !c.Null {
					if c.Text, err = clocks[c.Name].instant(c.Text); err != nil {
						return fmt.Errorf("tables: %s: %s: %w", table, c.Name, err)
					}
				}
				args = append(args, argument(c, db.Dialect()))
			}
			insert := fmt.Sprintf("insert into %s (%s) values (%s)", table, strings.Join(names, ", "), strings.Join(marks, ", "))
			if _, err := db.Conn().ExecContext(ctx, insert, args...); err != nil {
				return fmt.Errorf("tables: %s: %w", insert, err)
			}
		}
	}
	return nil
}

func argument(c testfile.Cell, on tx.Dialect) any {
	if c.Null {
		return nil
	}
	if on == tx.Postgres { // PostgreSQL reads a text as its column's type
		return c.Text
	}
	if i, err := strconv.ParseInt(c.Text, 10, 64); err == nil && !c.Quoted {
		return i
	}
	return c.Text
}

func queryRows(ctx context.Context, db tx.Database, text string, zone *time.Location) (columns []string, clocks []clock, list [][]string, err error) {
	var written []string
	if zone != nil && db.Dialect() == tx.SQLite {
		text, written = sqlvalue.AsWritten(ctx, db.Conn(), text, nil)
	}
	rows, err := db.Conn().QueryContext(ctx, text)
	if err != nil {
		return nil, nil, nil, err
	}
	defer func() {
		if cerr := rows.Close(); err == nil {
			err = cerr
		}
	}()
	types, err := rows.ColumnTypes()
	if err != nil {
		return nil, nil, nil, err
	}
	values, into := make([]any, len(types)), make([]any, len(types))
	for i := range values {
		declared := types[i].DatabaseTypeName()
		if written != nil && written[i] != "" {
			declared = written[i]
		}
		into[i], columns, clocks = &values[i], append(columns, types[i].Name()), append(clocks, clockOf(db.Dialect(), declared, zone))
	}
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return nil, nil, nil, err
		}
		if err := sqlvalue.Scanned(db.Dialect(), types, values); err != nil {
			return nil, nil, nil, err
		}
		texts := make([]string, len(values))
		for i, v := range values {
			texts[i] = clocks[i].text(valueText(types[i].DatabaseTypeName(), v))
		}
		list = append(list, texts)
	}
	return columns, clocks, list, rows.Err()
}

func valueText(column string, v any) string {
	switch v := v.(type) {
	case nil:
		return nullText
	case []byte:
		return string(v)
	case time.Time:
		if strings.EqualFold(column, "date") {
			return v.Format(time.DateOnly)
		}
		return v.UTC().Format(row.TimestampLayout)
	case float64:
		return row.FloatText(v)
	}
	return fmt.Sprint(v)
}

const nullText = "null"

func fileRows(name, text string, columns []string) (list [][]string, err error) {
	switch name[strings.LastIndexByte(name, '.')+1:] {
	case "csv":
		records, err := csv.NewReader(strings.NewReader(text)).ReadAll()
		if err != nil || len(records) == 0 {
			return nil, err
		}
		for _, r := range records[1:] {
			values := make([]string, len(columns))
			for i, c := range columns {
				if at := slices.Index(records[0], c); at >= 0 {
					values[i] = r[at]
				}
			}
			list = append(list, values)
		}
		return list, nil
	case "json":
		var docs []map[string]json.RawMessage
		err = json.Unmarshal([]byte(text), &docs)
		return documentRows(docs, columns), err
	case "jsonl":
		var docs []map[string]json.RawMessage
		lines := bufio.NewScanner(strings.NewReader(text))
		lines.Buffer(nil, len(text)+1)
		for lines.Scan() {
			var doc map[string]json.RawMessage
			if err := json.Unmarshal(lines.Bytes(), &doc); err != nil {
				return nil, err
			}
			docs = append(docs, doc)
		}
		return documentRows(docs, columns), lines.Err()
	}
	return nil, fmt.Errorf("rows can be read from csv, json and jsonl, by the suffix of the name: expect its text")
}

func documentRows(docs []map[string]json.RawMessage, columns []string) (list [][]string) {
	for _, doc := range docs {
		values := make([]string, len(columns))
		for i, c := range columns {
			values[i] = nullText
			if raw, ok := doc[c]; ok {
				if json.Unmarshal(raw, &values[i]) != nil {
					values[i] = string(raw)
				}
			}
		}
		list = append(list, values)
	}
	return list
}
