package expression

import (
	"crypto/md5"  //nolint:gosec // a checksum that other systems ask for, no protection
	"crypto/sha1" //nolint:gosec // as md5
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"regexp"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

func patternFunctions() []function {
	return []function{
		{"regexp_extract", "regexp_extract(text, 'PATTERN'): the match of the pattern, or its first group; with a third argument that group; nil without a match", 2, 3, extract},
		{"regexp_replace", "regexp_replace(text, 'PATTERN', new): replaces every match; ${1} in new is the first group", 3, 3, replacePattern},
		{"hash", "hash(x) or hash(x, 'md5'): sha256, sha1, md5 or crc32 of the UTF-8 of a text, or of bytes, in hex", 1, 2, hashText},
	}
}

func (c *call) pattern(i int) (*regexp.Regexp, error) {
	arg := c.args[i]
	if !arg.literal || arg.kind != row.String {
		return nil, errorf(arg.at, "%s needs its pattern as a text in quotes: %s", c.name, c.usage)
	}
	re, err := regexp.Compile(arg.value.Str())
	if err != nil {
		return nil, errorf(arg.at, "%v", err)
	}
	return re, nil
}

func extract(c *call) (*typed, error) {
	if err := c.wantAll(row.String, row.String, row.Int); err != nil {
		return nil, err
	}
	re, err := c.pattern(1)
	if err != nil {
		return nil, err
	}
	group := min(1, re.NumSubexp())
	if len(c.args) == 3 {
		n := c.args[2].value.Int()
		if !c.args[2].literal || n < 0 || n > int64(re.NumSubexp()) {
			return nil, errorf(c.args[2].at, "the pattern has the groups 0 (the whole match) to %d", re.NumSubexp())
		}
		group = int(n)
	}
	t := c.apply1(row.String, func(a row.Value) (row.Value, error) {
		at := re.FindStringSubmatchIndex(a.Str())
		if at == nil || at[2*group] < 0 {
			return row.Value{}, nil
		}
		return row.StringValue(a.Str()[at[2*group]:at[2*group+1]]), nil
	})
	t.nullable = true
	return t, nil
}

func replacePattern(c *call) (*typed, error) {
	if err := c.wantAll(row.String, row.String, row.String); err != nil {
		return nil, err
	}
	re, err := c.pattern(1)
	if err != nil {
		return nil, err
	}
	return c.apply3(row.String, func(a, _, by row.Value) (row.Value, error) {
		return row.StringValue(re.ReplaceAllString(a.Str(), by.Str())), nil
	}), nil
}

func hashes() map[string]func(text []byte) string {
	return map[string]func([]byte) string{
		"sha256": func(b []byte) string { s := sha256.Sum256(b); return hex.EncodeToString(s[:]) },
		"sha1":   func(b []byte) string { s := sha1.Sum(b); return hex.EncodeToString(s[:]) }, //nolint:gosec // see the import
		"md5":    func(b []byte) string { s := md5.Sum(b); return hex.EncodeToString(s[:]) },  //nolint:gosec // see the import
		"crc32":  func(b []byte) string { return fmt.Sprintf("%08x", crc32.ChecksumIEEE(b)) },
	}
}

func hashText(c *call) (*typed, error) {
	if err := c.want(0, row.String, row.BytesKind); err != nil {
		return nil, err
	}
	name := "sha256"
	if len(c.args) == 2 {
		if err := c.want(1, row.String); err != nil {
			return nil, err
		}
		name = c.args[1].value.Str()
	}
	sum := hashes()[name]
	if len(c.args) == 2 && !c.args[1].literal || sum == nil {
		names := sortedNames(hashes())
		slices.Sort(names)
		return nil, errorf(c.args[1].at, "hash supports %s, written in quotes", quotedNames(names))
	}
	return c.apply1(row.String, func(a row.Value) (row.Value, error) {
		return row.StringValue(sum([]byte(a.Str() + a.Bytes()))), nil // one of both is empty
	}), nil
}

func quotedNames(names []string) string { return "'" + strings.Join(names, "', '") + "'" }
