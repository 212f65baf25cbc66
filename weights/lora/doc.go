// Package lora reads low-rank adapters (LoRA) from safetensors files, whoever wrote them: the layouts of Diffusers' peft,
// of kohya's trainer, of ai-toolkit, ComfyUI and XLabs differ in names, in who scales, and in how layers are cut.
//
// The main type is [Adapter], factors by component and layer of the model. A caller says which layers a model has and
// how files may name them:
//
//	layers := lora.Layers{"transformer": {"x_embedder": {3072, 64}}}
//	a, err := lora.Open("pixel-art.safetensors", layers, []lora.Naming{lora.Same("transformer.", "transformer", layers)})
//	if err != nil {
//		return err // one line: every key that is nobody's, or the factor that does not fit
//	}
//	defer a.Close()
//	f := a.Factors["transformer"]["x_embedder"] // y += f.Scale · (x·Aᵀ)·Bᵀ
//
// A key that nothing claims is an error, because an adapter that is applied in part looks like one that does not work.
// Source: Hu et al. 2021; diffusers/loaders/lora_pipeline.py and lora_conversion_utils.py.
package lora
