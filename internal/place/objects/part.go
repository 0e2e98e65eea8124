package objects

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/internal/place"
)

// piece is an object of a part. Its name is made of its content, so that sending it again changes nothing.
type piece struct {
	start, size int64
	sum         uint32
	object      Object
}

func (p piece) end() int64 { return p.start + p.size }

func (p piece) name() string { return fmt.Sprintf("%016x-%x-%08x", p.start, p.size, p.sum) }

func pieceOf(name string, o Object) (piece, bool) {
	fields := strings.Split(name, "-")
	if len(fields) != 3 {
		return piece{}, false
	}
	start, err1 := strconv.ParseInt(fields[0], 16, 64)
	size, err2 := strconv.ParseInt(fields[1], 16, 64)
	sum, err3 := strconv.ParseUint(fields[2], 16, 32)
	return piece{start, size, uint32(sum), o}, err1 == nil && err2 == nil && err3 == nil && size == o.Size
}

// Small pieces become one of mergeBytes: an object is put together of 10,000 pieces of at least 5 MiB, but for the
// last. The larger the file, the larger its pieces.
const mergeBytes = 8 << 20

type part struct {
	ctx         context.Context
	in          *objects
	store       Store
	key, suffix string
	begun       time.Time

	pieces  []piece // in order
	tail    []byte  // the bytes of the small pieces at the end
	small   int     // how many these are
	unsent  []byte  // after the pieces
	size    int64
	strewn  []string // keys of objects that no position names any more
	tags    []string // of the staged publication
	reading *stream
}

func (o *objects) part(ctx context.Context, url, suffix string) (*part, error) {
	store, key, err := o.at(url)
	return &part{ctx: ctx, in: o, store: store, key: key, suffix: suffix}, err
}

func (p *part) folder() string { return p.key + p.suffix + "/" }

func (p *part) note(upload string) string { return p.folder() + notePrefix + upload }

func (p *part) begin() error {
	if err := p.store.Put(p.ctx, p.folder()+beginName, nil); err != nil {
		return err
	}
	return p.dated()
}

func (p *part) dated() error {
	found, err := p.store.Head(p.ctx, p.folder()+beginName)
	p.begun = found.Modified
	return err
}

// load finds the pieces of the first bytes.
func (p *part) load(size int64, sum uint32) error {
	if err := p.dated(); err != nil {
		return err
	}
	byStart := map[int64][]piece{}
	err := p.store.List(p.ctx, p.folder(), func(o Object) error {
		name := strings.TrimPrefix(o.Key, p.folder())
		found, is := pieceOf(name, o)
		if is {
			byStart[found.start] = append(byStart[found.start], found)
		}
		return nil
	})
	if err != nil {
		return err
	}
	chosen := choose(byStart, []piece{}, 0, place.Marked{Size: size, Sum: sum})
	if chosen == nil && size > 0 {
		return &place.ContentError{Difference: fmt.Sprintf("its objects are not the %d committed bytes any more: some were removed or changed", size)}
	}
	p.pieces, p.size = chosen, size
	for _, list := range byStart {
		for _, one := range list {
			if !slices.ContainsFunc(chosen, func(c piece) bool { return c.name() == one.name() }) {
				p.strewn = append(p.strewn, one.object.Key)
			}
		}
	}
	return p.loadTail()
}

// choose continues a way to the end over pieces with the right checksum, large ones first. Of one start there are a
// merged piece, and the leftovers of dead attempts.
func choose(byStart map[int64][]piece, way []piece, sum uint32, to place.Marked) []piece {
	start := int64(0)
	if len(way) > 0 {
		start = way[len(way)-1].end()
	}
	if start == to.Size {
		if sum == to.Sum {
			return way
		}
		return nil
	}
	list := byStart[start]
	slices.SortFunc(list, func(a, b piece) int { return cmp.Compare(b.size, a.size) })
	for _, one := range list {
		if one.size == 0 || one.end() > to.Size {
			continue
		}
		if whole := choose(byStart, append(way, one), joined(sum, one.sum, one.size), to); whole != nil {
			return whole
		}
	}
	return nil
}

// loadTail reads the bytes from the first small piece on.
func (p *part) loadTail() error {
	p.tail, p.small = nil, 0
	if i := slices.IndexFunc(p.pieces, func(one piece) bool { return one.size < mergeBytes }); i >= 0 {
		p.small = len(p.pieces) - i
	}
	for _, one := range p.pieces[len(p.pieces)-p.small:] {
		body := (&file{ctx: p.ctx, store: p.store, object: one.object}).From(0)
		data, err := io.ReadAll(body)
		if err = errors.Join(err, body.Close()); err != nil {
			return err
		}
		if crc32.Checksum(data, castagnoli()) != one.sum {
			return otherContent(one)
		}
		p.tail = append(p.tail, data...)
	}
	return nil
}

// tidy removes objects that no position names.
func (p *part) tidy() error {
	for len(p.strewn) > 0 {
		if err := p.store.Remove(p.ctx, p.strewn[0]); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		p.strewn = p.strewn[1:]
	}
	return nil
}

// take copies the pieces of another part: its attempt may wake.
func (p *part) take(old *part) error {
	if old.store != p.store { // another bucket
		return p.takeBytes(old)
	}
	for _, one := range old.pieces[:len(old.pieces)-old.small] {
		if err := p.compose([]piece{one}); err != nil {
			return err
		}
	}
	p.tail = nil
	if len(old.tail) > 0 {
		if err := p.send(old.tail); err != nil {
			return err
		}
	}
	return nil
}

func (p *part) takeBytes(old *part) error {
	for _, one := range old.pieces {
		body := (&file{ctx: p.ctx, store: old.store, object: one.object}).From(0)
		_, err := io.Copy(p, body)
		if err = errors.Join(err, body.Close()); err != nil {
			return err
		}
	}
	return p.Sync()
}

// compose adds one piece made of others by the store.
func (p *part) compose(of []piece) error {
	made := of[0]
	for _, one := range of[1:] {
		made.sum, made.size = joined(made.sum, one.sum, one.size), made.size+one.size
	}
	key := p.folder() + made.name()
	upload, err := p.store.Begin(p.ctx, key, "")
	if err != nil {
		return err
	}
	tags := make([]string, len(of))
	for i, one := range of {
		if tags[i], err = p.store.Copy(p.ctx, key, upload, i+1, one.object); err != nil {
			return errors.Join(err, p.store.Abort(p.ctx, key, upload))
		}
	}
	if err := p.store.Complete(p.ctx, key, upload, tags); err != nil {
		return errors.Join(err, p.store.Abort(p.ctx, key, upload))
	}
	if made.object, err = p.store.Head(p.ctx, key); err != nil {
		return err
	}
	p.pieces, p.size = append(p.pieces, made), made.end()
	return nil
}

func (p *part) Write(data []byte) (int, error) {
	p.unsent = append(p.unsent, data...)
	if len(p.unsent) >= mergeBytes {
		return len(data), p.Sync()
	}
	return len(data), nil
}

func (p *part) Sync() error {
	if len(p.unsent) == 0 {
		return nil
	}
	if err := p.send(p.unsent); err != nil {
		return err
	}
	p.unsent = p.unsent[:0]
	return nil
}

// ReadAt takes bytes of the small pieces from memory.
func (p *part) ReadAt(b []byte, off int64) (n int, err error) {
	for n < len(b) && off < p.size {
		var got int
		if start := p.smallStart(); off >= start {
			got = copy(b[n:], p.tail[off-start:])
		} else if got, err = p.readPiece(b[n:], off); err != nil {
			return n, err
		}
		n, off = n+got, off+int64(got)
	}
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

// readPiece continues the request of the last call where it can.
func (p *part) readPiece(b []byte, off int64) (int, error) {
	i, _ := slices.BinarySearchFunc(p.pieces, off, func(one piece, off int64) int { return cmp.Compare(one.end(), off+1) })
	one := p.pieces[i]
	want, at := b[:min(int64(len(b)), one.end()-off)], off-one.start
	if s := p.reading; s == nil || s.at != at || s.file.object.Key != one.object.Key {
		if err := p.endReading(); err != nil {
			return 0, err
		}
		p.reading = &stream{file: &file{ctx: p.ctx, store: p.store, object: one.object}, at: at}
	}
	n, err := io.ReadFull(p.reading, want)
	if err == nil && p.reading.at < one.size {
		return n, nil
	}
	return n, errors.Join(err, p.endReading())
}

func (p *part) endReading() error {
	s := p.reading
	if p.reading = nil; s == nil {
		return nil
	}
	return s.Close()
}

func (p *part) send(data []byte) error {
	one := piece{start: p.size, size: int64(len(data)), sum: crc32.Checksum(data, castagnoli())}
	key := p.folder() + one.name()
	ctx, done := graceful(p.ctx)
	defer done()
	if err := p.store.Put(ctx, key, data); err != nil {
		return err
	}
	one.object = Object{Key: key, Size: one.size}
	p.pieces, p.size = append(p.pieces, one), one.end()
	if one.size >= mergeBytes && p.small == 0 {
		return nil
	}
	p.tail, p.small = append(p.tail, data...), p.small+1
	return nil
}

// graceful outlives a context by a moment: of a request that is broken off, the store may still keep the object after
// Close has looked for it.
func graceful(ctx context.Context) (context.Context, func()) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		timer := time.AfterFunc(grace, cancel)
		context.AfterFunc(longer, func() { timer.Stop() })
	})
	return longer, func() {
		stop()
		cancel()
	}
}

const grace = 5 * time.Second

// Cut keeps the first bytes. Objects are removed only here and after a commit: those after a position are of no use.
func (p *part) Cut(size int64, sum uint32) error {
	p.unsent = p.unsent[:0]
	keep, at, total := 0, int64(0), uint32(0)
	for keep < len(p.pieces) && p.pieces[keep].end() <= size {
		one := p.pieces[keep]
		at, total, keep = one.end(), joined(total, one.sum, one.size), keep+1
	}
	if at != size || total != sum {
		return &place.ContentError{Difference: fmt.Sprintf("no object ends at the committed byte %d", size)}
	}
	for _, one := range p.pieces[keep:] {
		p.strewn = append(p.strewn, one.object.Key)
	}
	gone := len(p.pieces) - keep
	p.pieces, p.size = p.pieces[:keep], size
	if gone > 0 && gone <= p.small {
		p.small -= gone
		p.tail = p.tail[:size-p.smallStart()]
	} else if gone > 0 {
		if err := p.loadTail(); err != nil {
			return err
		}
	}
	return p.tidy()
}

func (p *part) smallStart() int64 {
	if p.small == 0 {
		return p.size
	}
	return p.pieces[len(p.pieces)-p.small].start
}

// Kept merges small pieces: all of them are committed, so that every position from now on ends after them.
func (p *part) Kept(ctx context.Context) error {
	if err := p.tidy(); err != nil {
		return err
	}
	if len(p.tail) < mergeBytes || p.small < 2 {
		if len(p.tail) >= mergeBytes {
			p.tail, p.small = nil, 0
		}
		return p.mergeLarge(ctx)
	}
	old := slices.Clone(p.pieces[len(p.pieces)-p.small:])
	whole := piece{start: old[0].start, size: int64(len(p.tail)), sum: crc32.Checksum(p.tail, castagnoli())}
	whole.object = Object{Key: p.folder() + whole.name(), Size: whole.size}
	if err := p.store.Put(ctx, whole.object.Key, p.tail); err != nil {
		return err
	}
	p.pieces = append(p.pieces[:len(p.pieces)-p.small], whole)
	p.tail, p.small = nil, 0
	for _, one := range old {
		p.strewn = append(p.strewn, one.object.Key)
	}
	return p.tidy()
}

// Of many large pieces the store makes one, so that 10,000 reach 5 TB.
const (
	mergeCount = 64
	largeBytes = mergeBytes * mergeCount
)

func (p *part) mergeLarge(context.Context) error {
	from := len(p.pieces) - p.small
	first := from
	for first > 0 && p.pieces[first-1].size < largeBytes {
		first--
	}
	if from-first < mergeCount {
		return nil
	}
	old := slices.Clone(p.pieces[first:from])
	rest := slices.Clone(p.pieces[from:])
	size := p.size
	p.pieces = p.pieces[:first]
	if err := p.compose(old); err != nil {
		p.pieces = append(append(p.pieces[:first], old...), rest...)
		p.size = size
		return err
	}
	p.pieces, p.size = append(p.pieces, rest...), size
	for _, one := range old {
		p.strewn = append(p.strewn, one.object.Key)
	}
	return p.tidy()
}

// Stage begins the object, notes it, and has the store copy the pieces into it.
func (p *part) Stage(ctx context.Context) (string, error) {
	switch alive, err := p.has(beginName); {
	case err != nil:
		return "", err
	case !alive:
		return "", place.ErrSuperseded
	}
	if err := p.endOthers(); err != nil {
		return "", err
	}
	// An upload that was begun is noted or ended, though the attempt has lost its step meanwhile.
	ctx, done := graceful(ctx)
	defer done()
	upload, err := p.store.Begin(ctx, p.key, p.suffix)
	if err != nil {
		return "", err
	}
	if err := p.store.Put(ctx, p.note(upload), nil); err != nil {
		return "", errors.Join(err, p.store.Abort(ctx, p.key, upload))
	}
	if p.tags, err = p.fill(ctx, upload); err != nil {
		return "", errors.Join(err, p.store.Abort(ctx, p.key, upload), p.store.Remove(ctx, p.note(upload)))
	}
	return upload, nil
}

func (p *part) fill(ctx context.Context, upload string) (tags []string, err error) {
	large := p.pieces[:len(p.pieces)-p.small]
	for i, one := range large {
		tag, err := p.store.Copy(ctx, p.key, upload, i+1, one.object)
		if err != nil {
			return nil, err
		}
		tags = append(tags, tag)
	}
	if len(p.tail) > 0 || len(large) == 0 {
		tag, err := p.store.Send(ctx, p.key, upload, len(large)+1, p.tail)
		if err != nil {
			return nil, err
		}
		tags = append(tags, tag)
	}
	return tags, nil
}

func (p *part) Publish(ctx context.Context, upload string) error {
	err := p.store.Complete(ctx, p.key, upload, p.tags)
	// Its answer is not believed, but the object.
	found, headErr := p.store.Head(ctx, p.key)
	switch {
	case headErr == nil && found.Part == p.suffix && found.Size == p.size:
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return superseded(err)
	case err != nil:
		return err
	case headErr != nil && !errors.Is(headErr, fs.ErrNotExist):
		return headErr
	}
	return superseded(errors.New("the store said that it was published, and the object is another"))
}

// Close removes the objects that this attempt sent after another one took over, which knows nothing of them.
func (p *part) Close(named bool) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(p.ctx), patience)
	defer cancel()
	p.ctx = ctx
	alive, err := p.has(beginName)
	if err = errors.Join(err, p.endReading()); err != nil {
		return err
	}
	if alive && named {
		return nil
	}
	return p.remove()
}
