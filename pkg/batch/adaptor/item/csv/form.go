package csv

import (
	"cmp"
	"fmt"
	"hash/crc32"
	"strconv"
	"strings"

	"github.com/surfin-batch/surfin/internal/filestream"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

const formColumns = "columns"

// formOf returns the properties that are the same in each record of a file (rule C15b). The columns of an
// open schema are known with the first item.
func formOf(cfg writerConfig, comma string, schema *row.Schema) filestream.Form {
	form := filestream.Form{
		filestream.FormWriter: "csv",
		"delimiter":           strconv.Quote(comma),
		"header":              strconv.FormatBool(cfg.Header),
		"line_end":            cmp.Or(cfg.LineEnd, "lf"),
		"quote":               cmp.Or(cfg.Quote, "minimal"),
		"quote_all":           strconv.FormatBool(cfg.QuoteAll),
		"escape":              strconv.Quote(cfg.Escape),
		"nulls":               strconv.Quote(cfg.Nulls),
		"encoding":            filestream.CanonicalEncoding(cfg.Encoding),
	}
	if !schema.IsOpen() {
		form[formColumns] = columnsText(schema, cfg.Nulls)
	}
	return form
}

// A step has 8 KB for its reader and writers together (rule D4). A checksum stands for the rest.
const maxColumnsText = 512

func columnsText(schema *row.Schema, nulls string) string {
	var whole, short strings.Builder
	for i := range schema.Len() {
		f, text := schema.Field(i), ""
		if i > 0 {
			text = ", "
		}
		if name := f.Source(); name == "" || strings.ContainsAny(name, `,;"()`) {
			text += strconv.Quote(name)
		} else {
			text += name
		}
		if f.Format != "" {
			text += " (format " + f.Format + ")"
			if f.Zone != nil {
				text += " (zone " + f.Zone.String() + ")"
			}
		}
		if f.Nullable && f.Nulls != nil && string(f.AppendText(nil, row.Value{})) != nulls {
			text += " (null " + strconv.Quote(string(f.AppendText(nil, row.Value{}))) + ")"
		}
		if whole.Len() == short.Len() && short.Len()+len(text) <= maxColumnsText {
			short.WriteString(text)
		}
		whole.WriteString(text)
	}
	if whole.Len() == short.Len() {
		return whole.String()
	}
	return fmt.Sprintf("%s, … (%d, checksum %08x)", short.String(), schema.Len(), crc32.ChecksumIEEE([]byte(whole.String())))
}
