module @aliased {
  func.func public @main(%arg0: tensor<2x3xf32>, %arg1: tensor<2x3xf32> {tf.aliasing_output = 1 : i32}) -> (tensor<2x3xf32>, tensor<2x3xf32>) {
    %0 = stablehlo.negate %arg0 : tensor<2x3xf32>
    %1 = stablehlo.add %arg0, %arg1 : tensor<2x3xf32>
    return %0, %1 : tensor<2x3xf32>, tensor<2x3xf32>
  }
}
