package nn

import "strings"

// Quantizable is the rule for which linear layers may compute in 8 bits, by the name of the weight: those of a model's
// repeated blocks, without the modulations that their norms hold. What stands alone (embedders, shared modulations, the
// last norm and projection) keeps its dtype: it is little work, and all of the picture depends on it.
func Quantizable(name string) bool {
	repeated := false
	for part := range strings.SplitSeq(name, ".") {
		if strings.HasPrefix(part, "norm") {
			return false
		}
		repeated = repeated || part >= "0" && part < ":"
	}
	return repeated
}
