package console

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"sync"
)

//go:embed static/*.css static/*.js static/*.svg
var own embed.FS

// assets are the static files: their addresses have a hash of the content, so browsers keep them for
// ever. They are compressed once.
type assets struct {
	base   string
	names  map[string]string // the name with the hash, by the file's name
	byName map[string]asset
}

type asset struct {
	plain, small []byte
	kind         string
}

func newAssets(base string) (*assets, error) {
	a := &assets{base: base, names: map[string]string{}, byName: map[string]asset{}}
	for _, in := range []struct {
		files embed.FS
		dir   string
	}{{own, "static"}, {vendored, "static/vendor"}} {
		list, err := fs.ReadDir(in.files, in.dir)
		if err != nil {
			return nil, fmt.Errorf("read the console's files: %w", err)
		}
		for _, entry := range list {
			if kind := kindOf(entry.Name()); kind != "" {
				if err := a.add(in.files, in.dir+"/"+entry.Name(), kind); err != nil {
					return nil, err
				}
			}
		}
	}
	return a, nil
}

func (a *assets) add(files embed.FS, file, kind string) error {
	text, err := files.ReadFile(file)
	if err != nil {
		return fmt.Errorf("read the console's files: %w", err)
	}
	var small bytes.Buffer
	to, err := gzip.NewWriterLevel(&small, gzip.BestCompression)
	if err != nil {
		return fmt.Errorf("compress %s: %w", file, err)
	}
	if _, err := to.Write(text); err != nil {
		return fmt.Errorf("compress %s: %w", file, err)
	}
	if err := to.Close(); err != nil {
		return fmt.Errorf("compress %s: %w", file, err)
	}
	const digits = 12
	sum := sha256.Sum256(text)
	name := path.Base(file)
	extension := path.Ext(name)
	hashed := strings.TrimSuffix(name, extension) + "." + hex.EncodeToString(sum[:])[:digits] + extension
	a.names[name] = hashed
	a.byName[hashed] = asset{text, small.Bytes(), kind}
	return nil
}

func kindOf(file string) string {
	switch path.Ext(file) {
	case ".css":
		return "text/css; charset=utf-8"
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	}
	return "" // a license
}

// text is the content of a file.
func (a *assets) text(name string) (string, error) {
	hashed, known := a.names[name]
	if !known {
		return "", fmt.Errorf("the console has no file %s", name)
	}
	return string(a.byName[hashed].plain), nil
}

// address is where a file is.
func (a *assets) address(name string) (string, error) {
	hashed, known := a.names[name]
	if !known {
		return "", fmt.Errorf("the console has no file %s", name)
	}
	return a.base + "/static/" + hashed, nil
}

func (a *assets) serve(w http.ResponseWriter, r *http.Request) {
	file, known := a.byName[r.PathValue("name")]
	h := w.Header()
	if !known {
		h.Set("Content-Type", "text/plain; charset=utf-8")
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte("there is no such file: it is of another version of the program\n")) //nolint:errcheck // the client has gone
		return
	}
	h.Set("Content-Type", file.kind)
	h.Set("Cache-Control", "public, max-age=31536000, immutable")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Vary", "Accept-Encoding")
	text := file.plain
	if acceptsGzip(r) {
		h.Set("Content-Encoding", "gzip")
		text = file.small
	}
	_, _ = w.Write(text) //nolint:errcheck // the client has gone
}

func acceptsGzip(r *http.Request) bool {
	for word := range strings.SplitSeq(r.Header.Get("Accept-Encoding"), ",") {
		name, quality, _ := strings.Cut(strings.TrimSpace(word), ";")
		if strings.EqualFold(name, "gzip") && strings.TrimSpace(quality) != "q=0" {
			return true
		}
	}
	return false
}

// gzips lends writers of gzip, each of which has a megabyte of buffers.
type gzips struct{ pool sync.Pool }

func newGzips() *gzips {
	return &gzips{sync.Pool{New: func() any {
		w, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed) //nolint:errcheck // the level is known
		return w
	}}}
}

func (g *gzips) compress(text []byte) ([]byte, error) {
	to := g.pool.Get().(*gzip.Writer) //nolint:errcheck,forcetypeassert // nothing else is put there
	defer g.pool.Put(to)
	small := bytes.NewBuffer(make([]byte, 0, len(text)/4))
	to.Reset(small)
	if _, err := to.Write(text); err != nil {
		return nil, err
	}
	err := to.Close()
	return small.Bytes(), err
}
