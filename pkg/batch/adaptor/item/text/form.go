package text

type form uint8

const (
	formText form = iota
	formZoned
	formPacked // COMP-3: two digits in a byte, the sign in the last half
	formBinary // COMP: two's complement, big-endian
)

var formNames = [...]string{formText: "text", formZoned: "zoned", formPacked: "packed", formBinary: "binary"}

func (f form) String() string { return formNames[f] }

type sign uint8

const (
	signTrailing sign = iota
	signLeading
	signTrailingSeparate
	signLeadingSeparate
	signNone
)

var signNames = [...]string{"trailing", "leading", "trailing_separate", "leading_separate", "none"}

func (s sign) String() string { return signNames[s] }

func byName[T ~uint8](names []string, name string) T {
	for i, known := range names {
		if known == name {
			return T(i)
		}
	}
	return 0
}
