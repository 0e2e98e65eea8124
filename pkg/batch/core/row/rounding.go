package row

import (
	"math/big"
	"math/bits"
)

// Rounding drops digits of a decimal.
type Rounding uint8

// Zero is RoundHalfUp.
const (
	RoundHalfUp   Rounding = iota // a half away from zero
	roundHalfEven                 // a half to the even digit
	roundHalfDown                 // a half towards zero
	RoundDown                     // towards zero
	roundUp                       // away from zero
	RoundFloor                    // towards minus infinity
	RoundCeiling                  // towards plus infinity
)

var roundingNames = [...]string{"half_up", "half_even", "half_down", "down", "up", "floor", "ceiling"}

// RoundingNames are the job file's.
func RoundingNames() []string { return append([]string(nil), roundingNames[:]...) }

// RoundingByName returns the rule of a name.
func RoundingByName(name string) (Rounding, bool) {
	for i, n := range roundingNames {
		if n == name {
			return Rounding(i), true
		}
	}
	return 0, false
}

func quotient(a, b *big.Int, mode Rounding) *big.Int {
	sign := a.Sign() * b.Sign()
	rest := new(big.Int)
	a.QuoRem(a, b, rest)
	if rest.Sign() == 0 {
		return a
	}
	half := rest.Abs(rest).Lsh(rest, 1).Cmp(b.Abs(b))
	if mode.awayFromZero(sign, half, a.Bit(0) == 1) {
		a.Add(a, big.NewInt(int64(sign)))
	}
	return a
}

// half compares the remainder with half of the last digit.
func (m Rounding) awayFromZero(sign, half int, odd bool) bool {
	switch m {
	case RoundHalfUp:
		return half >= 0
	case roundHalfEven:
		return half > 0 || half == 0 && odd
	case roundHalfDown:
		return half > 0
	case roundUp:
		return true
	case RoundFloor:
		return sign < 0
	case RoundCeiling:
		return sign > 0
	case RoundDown:
	}
	return false
}

func pow10(n int) *big.Int {
	return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil)
}

func pow10Short(n int) (int64, bool) {
	const maxShort = 18
	if n > maxShort {
		return 0, false
	}
	p := int64(1)
	for range n {
		p *= 10
	}
	return p, true
}

func mulShort(x, y int64) (int64, bool) {
	high, low := bits.Mul64(magnitude(x), magnitude(y))
	if high != 0 || low >= 1<<63 {
		return 0, false
	}
	return x * y, true
}

func magnitude(x int64) uint64 {
	if x < 0 {
		return -uint64(x)
	}
	return uint64(x)
}

// false if one does not fit in an int64.
func alignShort(d, e Decimal) (a, b int64, ok bool) {
	if d.digits != "" || e.digits != "" {
		return 0, 0, false
	}
	a, b = d.num, e.num
	switch {
	case d.scale < e.scale:
		factor, short := pow10Short(int(e.scale - d.scale))
		if !short {
			return 0, 0, false
		}
		a, ok = mulShort(a, factor)
		return a, b, ok
	case d.scale > e.scale:
		factor, short := pow10Short(int(d.scale - e.scale))
		if !short {
			return 0, 0, false
		}
		b, ok = mulShort(b, factor)
		return a, b, ok
	}
	return a, b, true
}

func align(d, e Decimal) (a, b *big.Int, scale int) {
	a, b, scale = d.big(), e.big(), int(max(d.scale, e.scale))
	if n := scale - int(d.scale); n > 0 {
		a.Mul(a, pow10(n))
	}
	if n := scale - int(e.scale); n > 0 {
		b.Mul(b, pow10(n))
	}
	return a, b, scale
}
