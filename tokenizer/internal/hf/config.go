package hf

import (
	"fmt"
	"io/fs"
	"math"
	"slices"
	"strconv"

	"github.com/gesso-go/gesso/internal/jsonwords"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Config is what tokenizer_config.json, special_tokens_map.json and added_tokens.json say together.
type Config struct {
	Class        string         // tokenizer_class, empty if not given
	MaxLength    int            // model_max_length, 0 if not given or without a limit
	ExtraIDs     int            // extra_ids: how many <extra_id_N> a T5 vocabulary ends with, -1 if not given
	PadLeft      bool           // padding_side is "left"
	TruncateLeft bool           // truncation_side is "left"
	Names        []NamedToken   // special tokens by role, in the order of Roles
	Added        []Token        // added tokens with an id, sorted by it
	Extra        []Token        // further special tokens, without an id
	source       map[string]int // content of Added by position
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

type configFile struct {
	Class          string           `json:"tokenizer_class"`
	MaxLength      *float64         `json:"model_max_length"` // "no limit" is saved as 1e30
	ExtraIDs       *int             `json:"extra_ids"`
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

// ReadConfig reads the settings of a folder; all three files may be absent. tokenizerJSON holds the added tokens of
// tokenizer.json, if the folder has one.
//
// The order of precedence is Transformers': where tokenizer_config.json lists added_tokens_decoder, that list and the
// roles beside it count alone; else special_tokens_map.json overrides the roles, and the added tokens come from
// added_tokens.json and tokenizer.json.
func ReadConfig(folder fs.FS, tokenizerJSON []Token) (*Config, error) {
	c := &Config{ExtraIDs: -1}
	var file configFile
	if err := readJSON(folder, "tokenizer_config.json", &file); err != nil {
		return nil, err
	}
	if err := c.settings(&file); err != nil {
		return nil, fmt.Errorf("tokenizer_config.json: %w", err)
	}
	roles := file.roleFields.all()
	extra := file.ExtraSpecial
	if len(extra) == 0 || string(extra) == "{}" || string(extra) == "[]" || string(extra) == "null" {
		extra = file.Additional
	}
	extraSource := "tokenizer_config.json"

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
		if err := readJSON(folder, "special_tokens_map.json", &special); err != nil {
			return nil, err
		}
		for i, t := range special.roleFields.all() {
			if t != nil {
				roles[i] = t
			}
		}
		for _, v := range []jsontext.Value{special.ExtraSpecial, special.Additional} {
			if len(v) > 0 && string(v) != "null" {
				extra, extraSource = v, "special_tokens_map.json"
			}
		}
		if err := c.addedTokensFile(folder, roles); err != nil {
			return nil, err
		}
		c.Added = append(c.Added, tokenizerJSON...)
	}
	extraTokens, err := tokenList(extra)
	if err != nil {
		return nil, fmt.Errorf("%s: extra special tokens: %w", extraSource, err)
	}
	c.Extra = extraTokens
	c.sortAdded()
	for i, t := range roles {
		if t == nil || t.Content == "" {
			continue
		}
		token := t.Token
		if at, ok := c.source[token.Content]; ok {
			token = c.Added[at]
		}
		c.Names = append(c.Names, NamedToken{Roles[i], token})
	}
	return c, nil
}

func (c *Config) settings(file *configFile) error {
	c.Class = file.Class
	if n := file.MaxLength; n != nil && *n < math.MaxInt32 {
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
	if c.PadLeft, err = isLeft(file.PaddingSide); err != nil {
		return fmt.Errorf("padding_side: %w", err)
	}
	if c.TruncateLeft, err = isLeft(file.TruncationSide); err != nil {
		return fmt.Errorf("truncation_side: %w", err)
	}
	return nil
}

func isLeft(side string) (bool, error) {
	switch side {
	case "", "right":
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
	if err := readJSON(folder, "added_tokens.json", &ids); err != nil {
		return err
	}
	for name, id := range ids {
		if id < 0 {
			return fmt.Errorf("added_tokens.json: %q: want an id of 0 or more, got %d", name, id)
		}
		special := slices.ContainsFunc(roles, func(t *TokenOrName) bool { return t != nil && t.Content == name })
		c.Added = append(c.Added, Token{Content: name, ID: id, Special: special, Normalized: !special})
	}
	return nil
}

// sortAdded orders the added tokens by id. Of two with one id, the later source counts.
func (c *Config) sortAdded() {
	slices.Reverse(c.Added)
	slices.SortStableFunc(c.Added, func(a, b Token) int { return a.ID - b.ID })
	c.Added = slices.CompactFunc(c.Added, func(a, b Token) bool { return a.ID == b.ID })
	c.source = make(map[string]int, len(c.Added))
	for i, t := range c.Added {
		c.source[t.Content] = i
	}
}

// tokenList reads a list of names or tokens, or an object of role to name or token.
func tokenList(v jsontext.Value) ([]Token, error) {
	if len(v) == 0 {
		return nil, nil
	}
	var tokens []Token
	switch v.Kind() {
	case 'n':
	case '[':
		var list []TokenOrName
		if err := json.Unmarshal(v, &list); err != nil {
			return nil, jsonError(err)
		}
		for _, t := range list {
			tokens = append(tokens, t.Token)
		}
	case '{':
		var byRole map[string]TokenOrName
		if err := json.Unmarshal(v, &byRole); err != nil {
			return nil, jsonError(err)
		}
		roles := make([]string, 0, len(byRole))
		for role := range byRole {
			roles = append(roles, role)
		}
		slices.Sort(roles)
		for _, role := range roles {
			tokens = append(tokens, byRole[role].Token)
		}
	default:
		return nil, fmt.Errorf("want an array or an object, got %s", jsonwords.Found(byte(v.Kind())))
	}
	return slices.DeleteFunc(tokens, func(t Token) bool { return t.Content == "" }), nil
}
