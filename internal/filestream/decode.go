package filestream

import (
	"bytes"
	"errors"
	"fmt"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/text/transform"
)

// decoder returns nil for UTF-8. Bytes that cannot be decoded become a byte that no UTF-8 has
// there, never U+FFFD: so each reader's check for valid UTF-8 finds it.
func (c *codec) decoder() transform.Transformer {
	switch {
	case c.units != "":
		return &unitDecoder{big: c.units == "be"}
	case c.page != nil:
		return newPageDecoder(c)
	case c.multi != nil:
		return &multiDecoder{inner: c.multi.NewDecoder().Transformer}
	}
	return nil
}

const damaged = 0xFF

// damage returns the byte itself if it cannot be part of valid UTF-8, else a byte that UTF-8 never
// has.
func damage(b byte) byte {
	if b >= 0x80 && b <= 0xC1 || b >= 0xF5 {
		return b
	}
	return damaged
}

type unitDecoder struct {
	big   bool
	begun bool
}

func (d *unitDecoder) Reset() { d.begun = false }

func (d *unitDecoder) Transform(dst, src []byte, atEOF bool) (nDst, nSrc int, err error) {
	if !d.begun {
		if len(src) < 2 && !atEOF {
			return 0, 0, transform.ErrShortSrc
		}
		d.begun = true
		switch {
		case len(src) < 2:
		case src[0] == 0xFF && src[1] == 0xFE:
			d.big, nSrc = false, 2
		case src[0] == 0xFE && src[1] == 0xFF:
			d.big, nSrc = true, 2
		}
	}
	for nSrc < len(src) {
		if len(dst)-nDst < utf8.UTFMax {
			return nDst, nSrc, transform.ErrShortDst
		}
		if len(src)-nSrc < 2 {
			if !atEOF {
				return nDst, nSrc, transform.ErrShortSrc
			}
			dst[nDst] = damaged
			return nDst + 1, nSrc + 1, nil
		}
		r, size := d.unit(src[nSrc:]), 2
		if utf16.IsSurrogate(r) {
			if len(src)-nSrc < 4 && !atEOF {
				return nDst, nSrc, transform.ErrShortSrc
			}
			second := rune(0)
			if len(src)-nSrc >= 4 {
				second = d.unit(src[nSrc+2:])
			}
			if r = utf16.DecodeRune(r, second); r == utf8.RuneError {
				dst[nDst] = damaged
				nDst, nSrc = nDst+1, nSrc+2
				continue
			}
			size = 4
		}
		nDst += utf8.EncodeRune(dst[nDst:], r)
		nSrc += size
	}
	return nDst, nSrc, nil
}

func (d *unitDecoder) unit(src []byte) rune {
	if d.big {
		return rune(src[0])<<8 | rune(src[1])
	}
	return rune(src[1])<<8 | rune(src[0])
}

type pageDecoder struct {
	transform.NopResetter
	ascii bool // bytes below 0x80 are themselves
	text  [256][utf8.UTFMax]byte
	size  [256]uint8
}

func newPageDecoder(c *codec) *pageDecoder {
	d := &pageDecoder{ascii: true}
	for i := range 256 {
		r := c.page.DecodeByte(byte(i))
		switch {
		case r == utf8.RuneError || c.isGap(r):
			d.text[i][0], d.size[i] = damage(byte(i)), 1
		default:
			d.size[i] = uint8(utf8.EncodeRune(d.text[i][:], r))
		}
		d.ascii = d.ascii && (i >= utf8.RuneSelf || r == rune(i))
	}
	return d
}

func (d *pageDecoder) Transform(dst, src []byte, _ bool) (nDst, nSrc int, err error) {
	for i, b := range src {
		if d.ascii && b < utf8.RuneSelf {
			if nDst == len(dst) {
				return nDst, i, transform.ErrShortDst
			}
			dst[nDst] = b
			nDst++
			continue
		}
		n := int(d.size[b])
		if len(dst)-nDst < n {
			return nDst, i, transform.ErrShortDst
		}
		nDst += copy(dst[nDst:], d.text[b][:n])
	}
	return nDst, len(src), nil
}

type multiDecoder struct {
	transform.NopResetter
	inner transform.Transformer
}

// Of these encodings only gb18030 has the character itself.
const replacement = "\uFFFD"

func (d *multiDecoder) Transform(dst, src []byte, atEOF bool) (nDst, nSrc int, err error) {
	nDst, nSrc, err = d.inner.Transform(dst, src, atEOF)
	if !bytes.Contains(dst[:nDst], []byte(replacement)) {
		return nDst, nSrc, err
	}
	return d.byCharacter(dst, src, atEOF)
}

func (d *multiDecoder) byCharacter(dst, src []byte, atEOF bool) (nDst, nSrc int, err error) {
	var text [4 * utf8.UTFMax]byte
	for nSrc < len(src) {
		n, used := 0, 0
		for length := 1; used == 0; length++ {
			if nSrc+length > len(src) {
				return nDst, nSrc, transform.ErrShortSrc
			}
			one, last := src[nSrc:nSrc+length], atEOF && nSrc+length == len(src)
			// There is room only for the replacement: the bytes after a damaged one may be text.
			if n, used, err = d.inner.Transform(text[:len(replacement)], one, last); errors.Is(err, transform.ErrShortDst) && used == 0 {
				n, used, err = d.inner.Transform(text[:], one, last)
			}
			if used == 0 && err == nil {
				return nDst, nSrc, fmt.Errorf("decode: no progress at %x", one)
			}
		}
		if len(dst)-nDst < n {
			return nDst, nSrc, transform.ErrShortDst
		}
		nDst += copy(dst[nDst:], d.kept(text[:n], src[nSrc:nSrc+used]))
		nSrc += used
	}
	return nDst, nSrc, nil
}

func (d *multiDecoder) kept(text, of []byte) []byte {
	if string(text) != replacement || bytes.Equal(of, []byte{0x84, 0x31, 0xA4, 0x37}) {
		return text
	}
	text[0] = damage(of[0])
	return text[:1]
}
