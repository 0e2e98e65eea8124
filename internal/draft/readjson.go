package draft

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/surfin-batch/surfin/internal/filestream"
	"github.com/surfin-batch/surfin/internal/humanize"
	"github.com/surfin-batch/surfin/internal/jsonfile"
	"github.com/surfin-batch/surfin/internal/jsontext"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
)

const maxDocument = 16 << 20

// The limits of a draft: an object with more keys probably has data as keys.
const (
	maxKeys      = 100   // of an object in an object
	maxFields    = 300   // including fields of objects
	maxTopFields = 2_000 // excluding them
)

func (s *Shape) sampleJSON(ctx context.Context) (columns []*column, err error) {
	in, err := s.openJSON(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, in.Close(ctx)) }()
	t := &tree{shape: s, given: names{}, all: candidates(false), flat: !s.options.Whole}
	t.root.members = map[string]*node{}
	for read := int64(0); !s.isRead(read); {
		doc, err := in.ReadDocument(ctx)
		if errors.Is(err, io.EOF) {
			s.Whole = true
			break
		}
		if err == nil {
			read += int64(len(doc))
			err = s.take(ctx, t, in, doc)
		}
		if item.IsConsumed(err) {
			s.broken.add(err)
		} else if err != nil {
			return nil, err
		}
	}
	if s.Rows == 0 && s.broken.count > 0 {
		return nil, fmt.Errorf("there is no row in it to infer from: %s", s.broken.first)
	}
	if s.Rows == 0 {
		return nil, errors.New("there is no row in it to infer from")
	}
	return t.columns(), nil
}

func (s *Shape) take(ctx context.Context, t *tree, in *jsonfile.Reader, doc []byte) error {
	if !utf8.Valid(doc) {
		at := 0
		for {
			r, n := utf8.DecodeRune(doc[at:])
			if r == utf8.RuneError && n == 1 {
				line := in.Meta().Line + int64(bytes.Count(doc[:at], []byte{'\n'}))
				return s.notUTF8(ctx, in.NotValid(), doc[at], line, in.RawText().Offset+int64(at))
			}
			at += n
		}
	}
	if err := t.scan.Valid(doc); err != nil {
		return item.Consumed(in.Meta(), jsontext.BadDocument(doc, err))
	}
	if doc = bytes.TrimSpace(doc); doc[0] != '{' {
		return item.Consumed(in.Meta(), fmt.Errorf("not a JSON object: %s", jsontext.Shorten(doc)))
	}
	s.Rows++
	s.keep(func() string { return string(doc) })
	t.line = in.Meta().Line
	return t.object(&t.root, doc)
}

func (s *Shape) openJSON(ctx context.Context) (*jsonfile.Reader, error) {
	cfg := jsonfile.Config{Name: s.Format, Path: s.Path, Encoding: filestream.EncodingName(s.Encoding), MaxLine: maxDocument}
	var in *jsonfile.Reader
	if s.Format == formatLines {
		in = jsonfile.NewLines(cfg)
	} else {
		if err := s.findItems(ctx); err != nil {
			return nil, err
		}
		var items []string
		if s.Items != "" {
			var err error
			if items, err = jsontext.Keys(s.Items); err != nil {
				return nil, err
			}
		}
		in = jsonfile.NewArray(cfg, items)
	}
	return in, in.Open(ctx, nil)
}

func (s *Shape) findItems(ctx context.Context) (err error) {
	in, err := filestream.OpenInput(ctx, filestream.InputConfig{Path: s.Path, Encoding: filestream.EncodingName(s.Encoding)}, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	d := json.NewDecoder(&forgetful{in, in.Start()})
	token, err := d.Token()
	switch {
	case errors.Is(err, io.EOF):
		return errors.New("it is empty: expected an array, or an object with an array")
	case err != nil || token == json.Delim('['):
		return err
	case token != json.Delim('{'):
		return errors.New("expected an array, or an object with an array")
	}
	var others []string
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return err
		}
		isRows, err := passValue(d)
		if err != nil {
			return err
		}
		switch path := joinPath("", fmt.Sprint(key)); {
		case isRows && s.Items == "":
			s.Items = path
		case isRows:
			others = append(others, path)
		}
		if d.InputOffset() > MaxJSON {
			break
		}
	}
	if s.Items == "" {
		return errors.New("no key of its object has an array of objects")
	}
	if len(others) > 0 {
		s.note("of its arrays only %s is read, not %s: items: %s reads that one", s.Items, strings.Join(others, ", "), others[0])
	}
	return nil
}

type forgetful struct {
	in *filestream.Input
	at int64
}

func (f *forgetful) Read(p []byte) (int, error) {
	n, err := f.in.Read(p)
	f.at += int64(n)
	f.in.Keep(f.at)
	return n, err
}

func passValue(d *json.Decoder) (isRows bool, err error) {
	for depth, n := 0, 0; ; n++ {
		token, err := d.Token()
		if err != nil {
			return false, err
		}
		switch token {
		case json.Delim('['), json.Delim('{'):
			isRows = isRows || n == 1 && token == json.Delim('{')
			if n == 0 && token == json.Delim('{') {
				n++ // its members are not an array's
			}
			depth++
		case json.Delim(']'), json.Delim('}'):
			depth--
		}
		if depth == 0 {
			return isRows, nil
		}
	}
}

type tree struct {
	shape   *Shape
	root    node
	given   names
	all     []*candidate
	scan    jsontext.Scanner
	flat    bool // objects become fields
	inner   int  // nodes in objects
	members []string
	line    int64
}

type node struct {
	path    string
	key     string
	depth   int
	members map[string]*node
	order   []*node
	values  *column
	objects int
	whole   bool
}

func (t *tree) object(n *node, doc []byte) error {
	for at := 1; ; {
		for jsontext.IsBlank(doc[at]) || doc[at] == ',' {
			at++
		}
		if doc[at] == '}' {
			return nil
		}
		length, err := t.scan.ValueLen(doc[at:], true)
		if err != nil {
			return err
		}
		key := doc[at : at+length]
		for at += length; jsontext.IsBlank(doc[at]) || doc[at] == ':'; {
			at++
		}
		if length, err = t.scan.ValueLen(doc[at:], true); err != nil {
			return err
		}
		if err := t.member(n, key, doc[at:at+length]); err != nil {
			return err
		}
		at += length
	}
}

func (t *tree) member(n *node, quoted, raw []byte) error {
	m := n.members[string(quoted)]
	if m == nil {
		key, err := jsontext.Unquote(quoted)
		if err != nil {
			return err
		}
		path := joinPath(n.path, key)
		m = &node{path: path, key: key, depth: n.depth + 1, members: map[string]*node{}}
		m.values = t.shape.column("", path, t.all)
		n.members[string(quoted)], n.order = m, append(n.order, m)
		switch {
		case n.depth == 0 && len(n.order) > maxTopFields:
			return fmt.Errorf("its objects have more than %s keys: are some of them data?", humanize.Count(maxTopFields))
		case n.depth > 0:
			t.inner++
			n.whole = n.whole || len(n.order) > maxKeys
			t.flat = t.flat && t.inner+len(t.root.order) <= maxFields
		}
	}
	switch raw[0] {
	case 'n':
		m.values.null()
	case '"':
		text, err := jsontext.Unquote(raw)
		if err != nil {
			return err
		}
		m.values.add(text, inText, t.line)
	case '[':
		if t.isRows(raw) && !slices.Contains(t.shape.Lists, m.path) {
			t.shape.Lists = append(t.shape.Lists, m.path)
		}
		m.values.add(string(raw), part, t.line)
	case '{':
		if isEmptyObject(raw) {
			m.whole = true
		}
		if m.objects++; t.flat && !m.whole {
			return t.object(m, raw)
		}
	default:
		m.values.add(string(raw), bare, t.line)
	}
	return nil
}

func (t *tree) isRows(raw []byte) bool {
	return bytes.HasPrefix(bytes.TrimLeft(raw[1:], " \t\r\n"), []byte("{"))
}

func isEmptyObject(raw []byte) bool {
	return bytes.HasPrefix(bytes.TrimLeft(raw[1:], " \t\r\n"), []byte("}"))
}

func (t *tree) columns() (all []*column) {
	var walk func(n *node)
	walk = func(n *node) {
		for _, m := range n.order {
			isWhole := m.whole || !t.flat || m.values.values > 0
			if m.objects > 0 && !isWhole {
				if m.depth == 1 {
					t.members = append(t.members, m.path)
				}
				walk(m)
				continue
			}
			c := m.values
			c.objects = m.objects
			c.absent = t.shape.Rows - c.values - c.nulls - c.objects
			c.name = t.given.of(m.path)
			c.from = t.source(n, m)
			all = append(all, c)
		}
	}
	walk(&t.root)
	if len(t.members) > 0 {
		t.shape.note("the members of %s are fields: --keep-objects keeps objects as json", strings.Join(t.members, ", "))
	}
	return all
}

// A name such as a.b is the key "a.b" if a document has one: then the path is a["b"].
func (t *tree) source(parent, m *node) string {
	if m.depth == 1 || !slices.ContainsFunc(t.root.order, func(top *node) bool { return top.key == m.path }) {
		return m.path
	}
	return parent.path + bracketed(m.key)
}

func bracketed(key string) string { return "[" + jsonText(key) + "]" }

func joinPath(prefix, key string) string {
	if strings.ContainsAny(key, `.[]"`) || key == "" {
		return prefix + bracketed(key)
	}
	if prefix == "" {
		return key
	}
	return prefix + "." + key
}
