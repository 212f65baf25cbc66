package hf

import (
	"bytes"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/gesso-go/gesso/internal/jsonwords"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Config is what tokenizer_config.json, special_tokens_map.json, added_tokens.json and tokenizer.json say together.
type Config struct {
	Class        string       // tokenizer_class, empty if not given
	MaxLength    int          // model_max_length, 0 if not given or without a limit
	ExtraIDs     int          // extra_ids: how many <extra_id_N> a T5 vocabulary ends with, -1 if not given
	PadLeft      bool         // padding_side is "left"
	TruncateLeft bool         // truncation_side is "left"
	SplitSpecial bool         // split_special_tokens: the names of special tokens in a text are text
	Names        []NamedToken // special tokens by role: those of Roles in this order, then a model's own
	Added        []Token      // added tokens with an id, sorted by it

	// Further special tokens, without an id; nil where the settings give none. Extra is what extra_special_tokens lists,
	// or additional_special_tokens of tokenizer_config.json; Additional what special_tokens_map.json has under the second name.
	Extra, Additional []Token
}

// NamedToken is the token that a settings file gives for a role such as "pad_token".
type NamedToken struct {
	Role  string
	Token Token
}

// Roles are the special tokens that have a name of their own, in the order in which Transformers adds them.
var Roles = []string{"bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"}

// Named gives the token for a role, and whether the settings name one.
func (c *Config) Named(role string) (Token, bool) {
	for _, n := range c.Names {
		if n.Role == role {
			return n.Token, true
		}
	}
	return Token{}, false
}

// Default gives roles the tokens that they have where the settings name none.
func (c *Config) Default(tokens []NamedToken) {
	for _, n := range tokens {
		if _, ok := c.Named(n.Role); !ok {
			c.Names = append(c.Names, n)
		}
	}
	c.sortNames()
}

// sortNames brings Names into its order.
func (c *Config) sortNames() {
	rank := func(n NamedToken) int {
		if at := slices.Index(Roles, n.Role); at >= 0 {
			return at
		}
		return len(Roles)
	}
	slices.SortStableFunc(c.Names, func(a, b NamedToken) int { return rank(a) - rank(b) })
}

type configFile struct {
	Class          string           `json:"tokenizer_class"`
	MaxLength      *float64         `json:"model_max_length"` // "no limit" is saved as 1e30
	MaxLen         *float64         `json:"max_len"`          // the older name
	ExtraIDs       *int             `json:"extra_ids"`
	SplitSpecial   bool             `json:"split_special_tokens"`
	PaddingSide    string           `json:"padding_side"`
	TruncationSide string           `json:"truncation_side"`
	Decoder        map[string]Token `json:"added_tokens_decoder"`
	ExtraSpecial   jsontext.Value   `json:"extra_special_tokens"`
	Additional     jsontext.Value   `json:"additional_special_tokens"`
	roleFields
}

type roleFields struct {
	BOS  *TokenOrName `json:"bos_token"`
	EOS  *TokenOrName `json:"eos_token"`
	UNK  *TokenOrName `json:"unk_token"`
	SEP  *TokenOrName `json:"sep_token"`
	PAD  *TokenOrName `json:"pad_token"`
	CLS  *TokenOrName `json:"cls_token"`
	MASK *TokenOrName `json:"mask_token"`
}

func (r *roleFields) all() []*TokenOrName {
	return []*TokenOrName{r.BOS, r.EOS, r.UNK, r.SEP, r.PAD, r.CLS, r.MASK}
}

type mapFile struct {
	ExtraSpecial jsontext.Value `json:"extra_special_tokens"`
	Additional   jsontext.Value `json:"additional_special_tokens"`
	roleFields
}

// ReadConfig reads the settings of a folder; all three files may be absent. tokenizerJSON is the folder's tokenizer.json,
// nil if it has none.
//
// The order of precedence is Transformers': where tokenizer_config.json lists added_tokens_decoder, that list and the
// roles beside it count alone; else special_tokens_map.json overrides the roles, and the added tokens come from
// added_tokens.json and tokenizer.json. The sides of padding and truncation that tokenizer.json has are defaults.
func ReadConfig(folder fs.FS, tokenizerJSON *TokenizerJSON) (*Config, error) {
	if tokenizerJSON == nil {
		tokenizerJSON = new(TokenizerJSON)
	}
	c := &Config{ExtraIDs: -1, PadLeft: tokenizerJSON.PadLeft, TruncateLeft: tokenizerJSON.TruncateLeft}
	var file configFile
	own, err := readMembers(folder, "tokenizer_config.json", &file)
	if err != nil {
		return nil, err
	}
	if err := c.settings(&file); err != nil {
		return nil, fmt.Errorf("tokenizer_config.json: %w", err)
	}
	extra := file.ExtraSpecial
	if isEmpty(extra) && file.Additional != nil {
		extra = file.Additional
	}
	roles := file.roleFields.all()
	specific, err := c.extra(own, extra)
	if err != nil {
		return nil, fmt.Errorf("tokenizer_config.json: %w", err)
	}

	if file.Decoder != nil {
		for key, token := range file.Decoder {
			id, err := strconv.Atoi(key)
			if err != nil || id < 0 {
				return nil, fmt.Errorf("tokenizer_config.json: added_tokens_decoder: want an id as key, got %q", key)
			}
			token.ID = id
			c.Added = append(c.Added, token)
		}
	} else {
		var special mapFile
		own, err := readMembers(folder, "special_tokens_map.json", &special)
		if err != nil {
			return nil, err
		}
		for i, t := range special.roleFields.all() {
			if t != nil {
				roles[i] = t
			}
		}
		more, err := c.extra(own, special.ExtraSpecial)
		if err == nil {
			c.Additional, err = tokenList(special.Additional)
		}
		if err != nil {
			return nil, fmt.Errorf("special_tokens_map.json: %w", err)
		}
		specific = append(specific, more...)
		if err := c.addedTokensFile(folder, roles); err != nil {
			return nil, err
		}
		c.Added = append(c.Added, tokenizerJSON.Added...)
	}
	c.sortAdded()
	c.name(roles, specific)
	return c, nil
}

// extra takes the tokens that a file lists beside the roles. A list is added to Extra; an object gives, as do further keys
// of the file that end in "_token", a model's own roles.
func (c *Config) extra(file []member, extra jsontext.Value) ([]NamedToken, error) {
	var specific []NamedToken
	own := slices.DeleteFunc(file, func(m member) bool {
		return slices.Contains(Roles, m.name) || !strings.HasSuffix(m.name, "_token") || m.value.Kind() != '"' && m.value.Kind() != '{'
	})
	if extra.Kind() == '{' {
		more, err := members(extra)
		if err != nil {
			return nil, err
		}
		own = append(own, more...)
	} else {
		list, err := tokenList(extra)
		if err != nil {
			return nil, fmt.Errorf("extra special tokens: %w", err)
		}
		if list != nil {
			c.Extra = append(append(make([]Token, 0, len(list)), c.Extra...), list...)
		}
	}
	for _, m := range own {
		var token TokenOrName
		if err := json.Unmarshal(m.value, &token); err != nil {
			return nil, fmt.Errorf("%s: %w", m.name, jsonError(err))
		}
		specific = append(specific, NamedToken{m.name, token.Token})
	}
	return specific, nil
}

// name fills Names. A token that is added under the same name has the flags that it is added with.
func (c *Config) name(roles []*TokenOrName, specific []NamedToken) {
	for i, t := range roles {
		if t != nil {
			specific = append(specific, NamedToken{Roles[i], t.Token})
		}
	}
	for _, n := range specific {
		if n.Token.Content == "" {
			continue
		}
		if at := slices.IndexFunc(c.Added, func(t Token) bool { return t.Content == n.Token.Content }); at >= 0 {
			n.Token = c.Added[at]
		}
		c.Names = append(c.Names, n)
	}
	c.sortNames()
}

func (c *Config) settings(file *configFile) error {
	c.Class = file.Class
	c.SplitSpecial = file.SplitSpecial
	n := file.MaxLength
	if n == nil {
		n = file.MaxLen
	}
	if n != nil && *n < math.MaxInt32 {
		if *n < 1 || *n != math.Trunc(*n) {
			return fmt.Errorf("model_max_length: want a whole number of tokens, got %v", *n)
		}
		c.MaxLength = int(*n)
	}
	if n := file.ExtraIDs; n != nil {
		if *n < 0 || *n > maxExtraIDs {
			return fmt.Errorf("extra_ids: want 0 to %d, got %d", maxExtraIDs, *n)
		}
		c.ExtraIDs = *n
	}
	var err error
	if c.PadLeft, err = isLeft(file.PaddingSide, c.PadLeft); err != nil {
		return fmt.Errorf("padding_side: %w", err)
	}
	if c.TruncateLeft, err = isLeft(file.TruncationSide, c.TruncateLeft); err != nil {
		return fmt.Errorf("truncation_side: %w", err)
	}
	return nil
}

func isLeft(side string, otherwise bool) (bool, error) {
	switch side {
	case "":
		return otherwise, nil
	case "right":
		return false, nil
	case "left":
		return true, nil
	}
	return false, fmt.Errorf("want left or right, got %q", side)
}

// addedTokensFile reads added_tokens.json, name to id. A token that the settings name as special is matched in the raw
// text, any other in the normalised one.
func (c *Config) addedTokensFile(folder fs.FS, roles []*TokenOrName) error {
	var ids map[string]int
	tokens, err := readMembers(folder, "added_tokens.json", &ids)
	if err != nil {
		return err
	}
	for _, m := range tokens {
		id := ids[m.name]
		if id < 0 {
			return fmt.Errorf("added_tokens.json: %q: want an id of 0 or more, got %d", m.name, id)
		}
		special := slices.ContainsFunc(roles, func(t *TokenOrName) bool { return t != nil && t.Content == m.name }) ||
			slices.ContainsFunc(c.Extra, func(t Token) bool { return t.Content == m.name })
		c.Added = append(c.Added, Token{Content: m.name, ID: id, Special: special, Normalized: !special})
	}
	return nil
}

// sortAdded orders the added tokens by id. Of two with one id, the later source counts.
func (c *Config) sortAdded() {
	slices.Reverse(c.Added)
	slices.SortStableFunc(c.Added, func(a, b Token) int { return a.ID - b.ID })
	c.Added = slices.CompactFunc(c.Added, func(a, b Token) bool { return a.ID == b.ID })
}

// isEmpty tells whether a list or object is absent, null or empty.
func isEmpty(v jsontext.Value) bool {
	return len(v) == 0 || v.Kind() == 'n' || len(bytes.Trim(v, "[{ \t\r\n}]")) == 0
}

// tokenList reads a list of names or tokens; it gives nil where there is none, an empty list for null and for an object,
// which has roles in place of a list.
func tokenList(v jsontext.Value) ([]Token, error) {
	if len(v) == 0 || v.Kind() == '{' {
		return nil, nil
	}
	if v.Kind() != '[' && v.Kind() != 'n' {
		return nil, fmt.Errorf("want an array or an object, got %s", jsonwords.Found(byte(v.Kind())))
	}
	var list []TokenOrName
	if err := json.Unmarshal(v, &list); err != nil {
		return nil, jsonError(err)
	}
	tokens := make([]Token, 0, len(list))
	for _, t := range list {
		if t.Content != "" {
			tokens = append(tokens, t.Token)
		}
	}
	return tokens, nil
}
