package main

import (
	"fmt"
	"strings"
)

// goKernel writes the portable twin of k.
func goKernel(k kernel) string {
	b := &builder{t: golang}
	k.body(b)
	var s strings.Builder
	decl, _ := k.signature()
	if k.reduce != "" {
		// The rounds of a reduction are apart from its partial results, for others to go on with.
		_, call := k.signature()
		init, fold := fmt.Sprintf("var acc [%d]float32", lanesReduced), "foldSum"
		if k.reduce == "max" {
			init, fold = "acc := minusInfs", "foldMax"
		}
		fmt.Fprintf(&s, "\n// %sGo: %s.\nfunc %sGo%s {\n\t%s\n\t%sGoInto(&acc, %s)\n\treturn %s(&acc)\n}\n", k.name, k.doc, k.name, decl, init, k.name, call, fold)
		into, _, _ := k.neonBody()
		fmt.Fprintf(&s, "\nfunc %sGoInto%s {\n", k.name, into)
	} else {
		fmt.Fprintf(&s, "\n// %sGo: %s.\nfunc %sGo%s {\n", k.name, k.doc, k.name, decl)
	}
	for _, st := range k.streams {
		fmt.Fprintf(&s, "\t%ss := unsafe.Slice(%s, n)\n", st.name, st.name)
	}
	// A rope pair reads its neighbour: both must be loaded before either is stored.
	pairs := false
	for _, n := range b.nodes {
		pairs = pairs || n.op == "swap"
	}
	if pairs {
		s.WriteString("\tfor i := 0; i+1 < n; i += 2 {\n")
		s.WriteString("\t\ta, b := xs[i], xs[i+1]\n")
		s.WriteString("\t\tdsts[i] = float32(a*coss[i]) + float32(-b*sins[i])\n")
		s.WriteString("\t\tdsts[i+1] = float32(b*coss[i+1]) + float32(a*sins[i+1])\n\t}\n}\n")
		return s.String()
	}
	s.WriteString("\tfor i := range n {\n")
	name := func(v val) string {
		n := b.nodes[v]
		switch n.kind {
		case kConst:
			return fmt.Sprintf("c%08x", n.bits)
		case kScalar:
			return n.name
		}
		return fmt.Sprintf("t%d", v)
	}
	line := func(v int, format string, args ...any) {
		fmt.Fprintf(&s, "\t\tt%d := "+format+"\n", append([]any{v}, args...)...)
	}
	for i, n := range b.nodes {
		if n.kind == kConst || n.kind == kScalar {
			continue
		}
		a := make([]any, len(n.args))
		for j, v := range n.args {
			a[j] = name(v)
		}
		switch n.op {
		case "load":
			st := streamOf(k, n.name)
			switch st.elem {
			case "f32":
				line(i, "%ss[i]", n.name)
			case "bf16":
				line(i, "tensor.BF16ToFloat32(%ss[i])", n.name)
			case "f16":
				line(i, "tensor.F16ToFloat32(%ss[i])", n.name)
			}
		case "store":
			st := streamOf(k, n.name)
			switch st.elem {
			case "f32":
				fmt.Fprintf(&s, "\t\t%ss[i] = %s\n", n.name, a[0])
			case "bf16":
				fmt.Fprintf(&s, "\t\t%ss[i] = uint16(bits(%s) >> 16)\n", n.name, a[0])
			case "f16":
				fmt.Fprintf(&s, "\t\t%ss[i] = tensor.Float32ToF16(%s)\n", n.name, a[0])
			}
		case "acc":
			line(i, "acc[i%%%d]", lanesReduced)
		case "add":
			line(i, "%s + %s", a...)
		case "sub":
			line(i, "%s - %s", a...)
		case "mul": // the conversion keeps the compiler from fusing the product with a later sum
			line(i, "float32(%s * %s)", a...)
		case "div":
			line(i, "%s / %s", a...)
		case "cmp":
			switch n.imm {
			case cmpEQ:
				line(i, "%s == %s", a...)
			case cmpLT:
				line(i, "%s < %s", a...)
			case cmpLE:
				line(i, "%s <= %s", a...)
			default:
				line(i, "%s != %s", a[0], a[0])
			}
		case "sel":
			line(i, "choose(%s, %s, %s)", a...)
		case "fnma":
			line(i, "fma(-%s, %s, %s)", a...)
		case "fma", "gt", "lt", "sqrt", "and", "or", "xor", "iadd", "isub", "toint", "f16":
			var as []string
			for _, v := range a {
				as = append(as, v.(string))
			}
			line(i, "%s(%s)", map[string]string{"fma": "fma", "gt": "greater", "lt": "less", "sqrt": "sqrt", "and": "and", "or": "or",
				"xor": "xor", "iadd": "intAdd", "isub": "intSub", "toint": "toInt", "f16": "roundF16"}[n.op], strings.Join(as, ", "))
		case "round":
			line(i, "%s(%s)", []string{"nearest", "floor", "ceil"}[n.imm], a[0])
		case "shl", "shr", "sra":
			line(i, "%s(%s, %d)", map[string]string{"shl": "shiftLeft", "shr": "shiftRight", "sra": "shiftArith"}[n.op], a[0], n.imm)
		default:
			fail("%s: %q has no portable form", k.name, n.op)
		}
	}
	if k.reduce != "" {
		fmt.Fprintf(&s, "\t\tacc[i%%%d] = %s\n", lanesReduced, name(b.accs[0]))
	}
	s.WriteString("\t}\n")
	s.WriteString("}\n")
	return s.String()
}

func streamOf(k kernel, name string) stream {
	for _, s := range k.streams {
		if s.name == name {
			return s
		}
	}
	fail("%s has no stream %q", k.name, name)
	return stream{}
}

// constants declares what the portable twins use.
func constants(ks []kernel) string {
	seen := map[uint32]bool{}
	var s strings.Builder
	s.WriteString("\nvar (\n")
	for _, k := range ks {
		b := &builder{t: golang}
		k.body(b)
		for _, n := range b.nodes {
			if n.kind == kConst && !seen[n.bits] {
				seen[n.bits] = true
				fmt.Fprintf(&s, "\tc%08x = math.Float32frombits(0x%08x)\n", n.bits, n.bits)
			}
		}
	}
	s.WriteString(")\n")
	return s.String()
}
